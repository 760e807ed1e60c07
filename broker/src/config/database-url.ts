const hidden = "…";
const schemes = /^postgres(ql)?:$/;

/** What a database's address must look like. */
export const databaseUrlRule =
  "empty or of the shape postgres://user:password@host:5432/database (by a socket: postgres:///database?host=/its/folder), with the signs @ : / ? # in a password percent-encoded";

/** Whether a text is the address of a PostgreSQL database that names host and database: a default of the driver's would be found by chance. */
export function isDatabaseUrl(text: string): boolean {
  if (text === "") return true;
  const url = parse(text);
  return url !== undefined && namesHost(url) && url.pathname.length > 1;
}

/** The address as it may be shown: user, password and parameters are left out, and so is everything of a text that is no address. */
export function databaseName(value: unknown): unknown {
  if (value === "" || typeof value !== "string") return value === "" ? value : hidden;
  const url = parse(value);
  if (url === undefined) return hidden;
  const { protocol, username, host, pathname, search } = url;
  const parameters = search === "" ? "" : `?${hidden}`;
  return `${protocol}//${username === "" ? "" : `${hidden}@`}${host}${pathname}${parameters}`;
}

/** Whether a password stands in the address. */
export function holdsPassword(address: string): boolean {
  const url = parse(address);
  return url !== undefined && (url.password !== "" || url.searchParams.has("password"));
}

function namesHost({ hostname, searchParams }: URL): boolean {
  return hostname !== "" || (searchParams.get("host") ?? "") !== "";
}

function parse(text: string): URL | undefined {
  if (!URL.canParse(text) || text.includes("\0")) return undefined;
  const url = new URL(text);
  // Where a sign that parts an address stands in a password unencoded, the rest of the password, with the @ behind it, is taken for something else.
  const isCut = `${url.pathname}${url.search}`.includes("@") || text.includes("#");
  return schemes.test(url.protocol) && !isCut ? url : undefined;
}
