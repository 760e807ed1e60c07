import { StoreError } from "../store-error.ts";

/** Where a database is, and how it is reached. */
export interface PostgresAddress {
  /** What messages call the database: never user or password. */
  readonly description: string;
  /** For the driver. It holds the password. */
  readonly connectionString: string;
  readonly tls: TlsUse;
}

/**
 * `prefer`: TLS where the server offers it, else in the clear. `none`: a socket in the file system, where `sslmode` means nothing.
 * `as-given`: the driver does what the address asks for.
 */
export type TlsUse = "prefer" | "none" | "as-given";

const shape = "postgres://user:password@host:5432/database";

/** Those of libpq but `allow`, which tries the clear first. */
const sslModes: ReadonlySet<string> = new Set(["disable", "prefer", "require", "verify-ca", "verify-full"]);

/**
 * Reads the usual address of a PostgreSQL database, whose `sslmode` means what it means to PostgreSQL's own programs.
 * @throws StoreError without any part of the text, since a password may be in it.
 */
export function parsePostgresAddress(text: string): PostgresAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^postgres(ql)?:$/.test(url.protocol)) {
    throw new StoreError(
      "cannot-open",
      `the address of the PostgreSQL database is malformed: it has the shape ${shape}`,
    );
  }
  const sslMode = url.searchParams.get("sslmode") ?? "prefer";
  if (!sslModes.has(sslMode)) {
    const choices = [...sslModes].join(", ");
    throw new StoreError("cannot-open", `${describe(url)} has an sslmode in its address that is none of ${choices}`);
  }
  const connectionString = withLibpqMeaning(text, url);
  const tls = isSocket(url) ? "none" : sslMode === "prefer" ? "prefer" : "as-given";
  return { description: describe(url), connectionString, tls };
}

function isSocket(url: URL): boolean {
  return hostOf(url).startsWith("/");
}

function hostOf(url: URL): string {
  return url.searchParams.get("host") ?? decodeURIComponent(url.hostname);
}

function describe(url: URL): string {
  const host = hostOf(url);
  const place = host.startsWith("/") || url.port === "" ? host : `${host}:${url.port}`;
  const name = decodeURIComponent(url.pathname.slice(1));
  return `PostgreSQL database${name === "" ? "" : ` ${name}`}${place === "" ? "" : ` at ${place}`}`;
}

function withLibpqMeaning(text: string, url: URL): string {
  if (url.searchParams.has("uselibpqcompat")) return text;
  return `${text}${text.includes("?") ? "&" : "?"}uselibpqcompat=true`;
}
