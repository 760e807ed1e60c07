import { StoreError } from "../store-error.ts";

/** Where a database is, and how it is reached. */
export interface PostgresAddress {
  /** What messages call the database: never user or password. */
  readonly description: string;
  /** For the driver. It holds the password. */
  readonly connectionString: string;
}

const shape = "postgres://user:password@host:5432/database";

/** Those of libpq that this driver can keep: it makes no second try without or with TLS, as `allow` and `prefer` would. */
const sslModes: ReadonlySet<string> = new Set(["disable", "require", "verify-ca", "verify-full"]);

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
  const sslMode = url.searchParams.get("sslmode") ?? "disable";
  if (!sslModes.has(sslMode)) {
    const choices = [...sslModes].join(", ");
    throw new StoreError("cannot-open", `${describe(url)} has an sslmode in its address that is none of ${choices}`);
  }
  return { description: describe(url), connectionString: withLibpqMeaning(text, url) };
}

function describe(url: URL): string {
  const host = url.searchParams.get("host") ?? decodeURIComponent(url.hostname);
  const place = host.startsWith("/") || url.port === "" ? host : `${host}:${url.port}`;
  const name = decodeURIComponent(url.pathname.slice(1));
  return `PostgreSQL database${name === "" ? "" : ` ${name}`}${place === "" ? "" : ` at ${place}`}`;
}

function withLibpqMeaning(text: string, url: URL): string {
  if (url.searchParams.has("uselibpqcompat")) return text;
  return `${text}${text.includes("?") ? "&" : "?"}uselibpqcompat=true`;
}
