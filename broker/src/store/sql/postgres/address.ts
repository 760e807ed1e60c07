import { StoreError } from "../store-error.ts";

/** A database's address, and how to connect to it. */
export interface PostgresAddress {
  /** Name of the database in messages, without user and password. */
  readonly description: string;
  /** Address for the driver, with the password. */
  readonly connectionString: string;
  readonly tls: TlsUse;
}

/**
 * `prefer`: TLS if the server offers it, else clear text. `none`: a socket in the file system, where `sslmode` means nothing.
 * `as-given`: the driver follows the address.
 */
export type TlsUse = "prefer" | "none" | "as-given";

const shape = "postgres://user:password@host:5432/database";

/** The modes of libpq except `allow`, which tries clear text first. */
const sslModes: ReadonlySet<string> = new Set(["disable", "prefer", "require", "verify-ca", "verify-full"]);

/**
 * Parses the usual address of a PostgreSQL database. `sslmode` has the same meaning as in PostgreSQL's own programs.
 * @throws StoreError without the user and the password. If the address is malformed, the error has no part of the text, since any may be the password.
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
    throw new StoreError("cannot-open", `${describe(url)} has an sslmode in its address that is not one of ${choices}`);
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
