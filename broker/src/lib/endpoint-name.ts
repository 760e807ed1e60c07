const hidden = "…";

/**
 * A chain endpoint's address as it may be shown: what may hold a key (user, password, path, query) is left out. The path of an IPC
 * socket is shown.
 */
export function endpointName(address: string): string {
  if (address.startsWith("ipc:")) return address;
  if (!URL.canParse(address)) return hidden;
  const { protocol, host, pathname, search, hash, username, password } = new URL(address);
  const isBare = (pathname === "" || pathname === "/") && `${search}${hash}${username}${password}` === "";
  return `${protocol}//${host}${isBare ? "" : `/${hidden}`}`;
}
