import { StoreError, type StoreFault } from "../store-error.ts";

/** A failure, and whether its connection is lost. */
export interface PostgresFailure {
  readonly error: StoreError;
  readonly isConnectionLost: boolean;
}

interface Advice {
  readonly fault: StoreFault;
  readonly text: string;
}

const unreachable: Advice = {
  fault: "unavailable",
  text: "cannot be reached: check that it runs and that its address is right",
};

/** Advice by SQLSTATE, or by its class: the first two characters (postgresql.org/docs/current/errcodes-appendix.html). */
const adviceByState: ReadonlyMap<string, Advice> = new Map<string, Advice>([
  ["08", unreachable],
  [
    "28",
    { fault: "cannot-open", text: "refuses this user: check the user, the password and the server's pg_hba.conf" },
  ],
  ["3D", { fault: "cannot-open", text: "does not exist: create it" }],
  [
    "42501",
    { fault: "cannot-open", text: "denies this user a right: grant it the rights to create and change tables" },
  ],
  ["25006", { fault: "read-only", text: "is read-only, as a standby is: connect to the primary" }],
  ["40001", { fault: "conflict", text: "undid a change that conflicted with another one" }],
  ["40P01", { fault: "conflict", text: "undid a change that conflicted with another one" }],
  ["0A000", { fault: "conflict", text: "has changed its tables meanwhile" }], // The server had cached a plan from before the change.
  ["53", { fault: "unavailable", text: "is short of resources: check its memory and max_connections" }],
  ["53100", { fault: "full", text: "cannot grow, its disk is full: free some space; nothing of this change was kept" }],
  ["55P03", { fault: "lock-timeout", text: "kept a change waiting too long for a lock" }],
  ["57", unreachable],
  ["57014", { fault: "unavailable", text: "took too long" }],
  ["58", { fault: "io", text: "could not be read or written: check the server's disk and its log" }],
  ["25P03", { fault: "unavailable", text: "ended a change that was idle for too long" }],
  ["XX001", { fault: "corrupt", text: "is damaged: restore it from a backup" }],
  ["XX002", { fault: "corrupt", text: "is damaged: restore it from a backup" }],
]);

/** Messages of driver errors without a code. */
const adviceByMessage: readonly (readonly [RegExp, Advice])[] = [
  [
    /^timeout exceeded when trying to connect/,
    { fault: "exhausted", text: "has no connection free for so many calls" },
  ],
  [/^Query read timeout/, { fault: "unavailable", text: "did not answer in time" }],
  [/Connection terminated|not queryable|timeout expired|connection to server/, unreachable],
  [
    /password must be a string/, // No password was given.
    {
      fault: "cannot-open",
      text: "refuses this user without a password: put it into databaseUrl, or into the file that databasePasswordFile names",
    },
  ],
  [
    /SASL|password/i,
    { fault: "cannot-open", text: "refuses this user: check the user and the password in its address" },
  ],
  [/^the database has -?\d+ where at most/, { fault: "corrupt", text: "is damaged: restore it from a backup" }], // See value-types.ts.
  [/does not support SSL/, { fault: "cannot-open", text: "does not speak TLS: set it up, or use sslmode=disable" }],
];

const tls: Advice = { fault: "cannot-open", text: "is not trusted: check its certificate, sslrootcert and sslmode" };
const tlsCode = /CERT|^ERR_(TLS|SSL|OSSL)|^UNABLE_TO|SIGNATURE/;
const systemCode = /^E[A-Z]+$/;
const stateCode = /^[0-9A-Z]{5}$/;

/**
 * The only function that classifies errors of PostgreSQL and its driver. It keeps only message and code, because other fields quote rows, and rows contain
 * secrets.
 */
export function toFailure(thrown: unknown, description: string): PostgresFailure {
  if (thrown instanceof StoreError) return { error: thrown, isConnectionLost: true }; // Our own code refused the connection.
  const { code, severity, message } = readError(thrown);
  const isState = stateCode.test(code) && severity !== "";
  const advice = isState ? adviceOfState(code) : adviceOfDriver(code, message);
  const detail = `${isState ? "PostgreSQL " : ""}${code === "" ? message : `${code}: ${message}`}`;
  const text = advice === undefined ? `${description}: ${detail}` : `${description} ${advice.text} (${detail})`;
  return {
    error: new StoreError(advice?.fault ?? "other", text),
    isConnectionLost: !isState || severity !== "ERROR" || /^(0A000|25006|57P..|08...)$/.test(code),
  };
}

/** The error for damage in a table that is derived from the chain. */
export function damagedIndex(description: string, found: string): StoreError {
  const remedy =
    "restore the database from a backup, or start the broker again, which rebuilds the index from the chain";
  return new StoreError("corrupt", `${description} is damaged: ${found}; ${remedy}`);
}

function adviceOfState(code: string): Advice | undefined {
  return adviceByState.get(code) ?? adviceByState.get(code.slice(0, 2));
}

function adviceOfDriver(code: string, message: string): Advice | undefined {
  if (tlsCode.test(code)) return tls;
  if (systemCode.test(code)) return unreachable;
  return adviceByMessage.find(([pattern]) => pattern.test(message))?.[1];
}

function readError(thrown: unknown): { readonly code: string; readonly severity: string; readonly message: string } {
  if (!(thrown instanceof Error)) return { code: "", severity: "", message: String(thrown) };
  const code = "code" in thrown && typeof thrown.code === "string" ? thrown.code : "";
  const severity = "severity" in thrown && typeof thrown.severity === "string" ? thrown.severity : "";
  // A name with several addresses fails with one error for each, and no message of its own.
  const [first]: readonly unknown[] = thrown instanceof AggregateError ? thrown.errors : [];
  const message = thrown.message === "" && first instanceof Error ? first.message : thrown.message;
  return { code, severity, message };
}
