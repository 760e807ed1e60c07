const hidden = "…";
const schemes = /^postgres(ql)?:$/;

/** Form of a database address. */
export const databaseUrlRule =
  "empty or of the form postgres://user:password@host:5432/database (by a socket: postgres:///database?host=/its/folder), with the characters @ : / ? # in a password percent-encoded";

/**
 * Whether a text is the address of a PostgreSQL database with both host and database. Without them, the driver's defaults might connect to some
 * other database.
 */
export function isDatabaseUrl(text: string): boolean {
  if (text === "") return true;
  const url = parse(text);
  return url !== undefined && namesHost(url) && url.pathname.length > 1;
}

/** The address without secrets: leaves out user, password and parameters, and all of a text that is not an address. */
export function databaseName(value: unknown): unknown {
  if (value === "" || typeof value !== "string") return value === "" ? value : hidden;
  const url = parse(value);
  if (url === undefined) return hidden;
  const { protocol, username, host, pathname, search } = url;
  const parameters = search === "" ? "" : `?${hidden}`;
  return `${protocol}//${username === "" ? "" : `${hidden}@`}${host}${pathname}${parameters}`;
}

/** Whether the address contains a password. */
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
  // An unencoded separator in a password ends the password early: the parser then takes its rest, and the @ after it, for something else.
  const isCut = `${url.pathname}${url.search}`.includes("@") || text.includes("#");
  return schemes.test(url.protocol) && !isCut ? url : undefined;
}
