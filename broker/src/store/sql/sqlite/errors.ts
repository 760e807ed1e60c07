import { StoreError, type StoreFault } from "../store-error.ts";

interface Advice {
  readonly fault: StoreFault;
  readonly text: string;
}

const rebuild =
  "restore the data folder from a backup, or move this file away with its -wal and start again: the index is then built anew from the chain, and subscriptions have to be made anew";

/** By SQLite's primary result code (sqlite.org/rescode.html). */
const adviceByCode: ReadonlyMap<number, Advice> = new Map([
  [5, { fault: "locked", text: "is in use by another process: stop that one, or use another data folder" }],
  [6, { fault: "locked", text: "is in use by another connection: stop that one, or use another data folder" }],
  [8, { fault: "read-only", text: "cannot be written: give this user write permission on the file and its folder" }],
  [
    10,
    {
      fault: "io",
      text: "could not be read or written: check the disk, its free space and quotas, and the system log",
    },
  ],
  [11, { fault: "corrupt", text: `is damaged: ${rebuild}` }],
  [13, { fault: "full", text: "cannot grow, the disk is full: free some space; nothing of this change was kept" }],
  [
    14,
    { fault: "cannot-open", text: "cannot be opened: check that its folder exists and may be written by this user" },
  ],
  [26, { fault: "corrupt", text: `is not a database, or is damaged: ${rebuild}` }],
]);

/**
 * The text that SQLite has for a code (sqlite3_errstr). Reading rows with `all`, `@photostructure/sqlite` 1 throws errors that have it as their
 * message, and no code.
 */
const codeByMessage: ReadonlyMap<string, number> = new Map([
  ["database is locked", 5],
  ["attempt to write a readonly database", 8],
  ["disk I/O error", 10],
  ["database disk image is malformed", 11],
  ["database or disk is full", 13],
  ["unable to open database file", 14],
  ["file is not a database", 26],
]);

/** No row of the store holds such a number, unless it is damaged. */
const numberTooLarge = /^Value is too large to be represented as a JavaScript number/;
const corrupt = 11;

/** The one place where SQLite's errors are recognised. Returns other errors unchanged. */
export function toStoreError(error: unknown, description: string): unknown {
  const code = sqliteCodeOf(error);
  if (code === undefined) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const advice = adviceByCode.get(code & 0xff);
  if (advice === undefined) return new StoreError("other", `${description}: ${reason}`, error);
  return new StoreError(advice.fault, `${description} ${advice.text} (SQLite ${code}: ${reason})`, error);
}

/** The error for damage that SQLite's own check found and rebuilding the indexes did not repair. */
export function corruptTable(description: string, found: string): StoreError {
  return new StoreError("corrupt", `${description} is damaged: ${rebuild} (SQLite: ${found})`);
}

/** The error for a damaged row of a table that is derived from the chain. */
export function damagedRow(description: string, what: string): StoreError {
  const remedy = "start again: the index is then built anew from the chain, and subscriptions are kept";
  return new StoreError("corrupt", `${description} is damaged: ${what} does not match its checksum; ${remedy}`);
}

function sqliteCodeOf(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  if ("errcode" in error && typeof error.errcode === "number") return error.errcode;
  return codeByMessage.get(error.message) ?? (numberTooLarge.test(error.message) ? corrupt : undefined);
}
