/**
 * The receiver behind a callback address: scheme, host and port, in one spelling. Undefined for what is no address, as that of a listener which
 * holds a connection.
 */
export function findReceiver(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const { protocol, hostname, port } = new URL(url);
  return `${protocol}//${hostname.replace(/\.$/, "")}${port === "" ? "" : `:${port}`}`;
}
