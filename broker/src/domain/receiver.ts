/** The receiver of a callback address: scheme, host and port, normalised. Undefined for a text that is not an address. */
export function findReceiver(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const { protocol, hostname, port } = new URL(url);
  return `${protocol}//${hostname.replace(/\.$/, "")}${port === "" ? "" : `:${port}`}`;
}
