const hidden = "…";

/** A chain endpoint's address without parts that may contain a key (user, password, path, query). Keeps the path of an IPC socket. */
export function endpointName(address: string): string {
  if (address.startsWith("ipc:")) return address;
  if (!URL.canParse(address)) return hidden;
  const { protocol, host, pathname, search, hash, username, password } = new URL(address);
  const isBare = (pathname === "" || pathname === "/") && `${search}${hash}${username}${password}` === "";
  return `${protocol}//${host}${isBare ? "" : `/${hidden}`}`;
}
