/** The text that replaces a value that may be secret. */
const hidden = "hidden";

/** A callback address without parts that may be secret: user name, password, fragment, values of its query. Empty for a text that is not an address. */
export function withoutSecrets(url: string): string {
  if (!URL.canParse(url)) return "";
  const { origin, pathname, searchParams } = new URL(url);
  const query = [...searchParams].map(([name, value]) =>
    value === "" ? hidden : `${encodeURIComponent(name)}=${hidden}`,
  );
  return `${origin}${pathname}${query.length === 0 ? "" : `?${query.join("&")}`}`;
}

/** The receiver of a callback address: scheme, host and port, normalised. Undefined for a text that is not an address. */
export function findReceiver(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const { protocol, hostname, port } = new URL(url);
  return `${protocol}//${hostname.replace(/\.$/, "")}${port === "" ? "" : `:${port}`}`;
}
