import { StoreError, type StoreFault } from "../store-error.ts";

interface Advice {
  readonly fault: StoreFault;
  readonly text: string;
}

/** Restoring the whole folder would lose the events since the backup, which the chain still has. */
const rebuild = "restore only the store from a backup, or build it from the chain, as docs/backup.md#repair says";

/** Advice by SQLite's primary result code (sqlite.org/rescode.html). */
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
 * SQLite's texts for codes (sqlite3_errstr). When `@photostructure/sqlite` 1 reads rows with `all`, it throws errors with this text as their message,
 * and without a code.
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

/** The message for a number that only a damaged row of the store has. */
const numberTooLarge = /^Value is too large to be represented as a JavaScript number/;
const corrupt = 11;

/** Whether a row has a number that JavaScript cannot represent. */
export function isNumberTooLarge(error: unknown): boolean {
  return error instanceof Error && numberTooLarge.test(error.message);
}

/** The only function that classifies SQLite's errors. Returns other errors unchanged. */
export function toStoreError(error: unknown, description: string): unknown {
  const code = sqliteCodeOf(error);
  if (code === undefined) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const advice = adviceByCode.get(code & 0xff);
  if (advice === undefined) return new StoreError("other", `${description}: ${reason}`, error);
  return new StoreError(advice.fault, `${description} ${advice.text} (SQLite ${code}: ${reason})`, error);
}

/** The error for damage of the file that emptying the index did not remove. */
export function corruptFile(description: string, found: string): StoreError {
  return new StoreError("corrupt", `${description} is damaged: ${rebuild} (SQLite: ${found})`);
}

/** The error for a table that differs from its database indexes, since the disk lost a write, and whose content is not on the chain. */
export function lostRows(
  description: string,
  { table, found, lost }: { readonly table: string; readonly found: string; readonly lost: readonly string[] },
): StoreError {
  const rows = lost.length === 0 ? "" : ` Rows that only its index has: ${lost.join(", ")}.`;
  const remedy =
    "Restore only the store from a backup, as docs/backup.md#repair says. Or accept that rows are lost or old: " +
    `run "reindex ${table}" on this file with the sqlite3 tool, start again, and create the lost rows again`;
  const text = `is damaged: its table ${table} and the table's database indexes disagree (SQLite: ${found}).`;
  return new StoreError("corrupt", `${description} ${text}${rows} ${remedy}`);
}

/** The error for damage in a table that is derived from the chain. */
export function damagedIndex(description: string, found: string): StoreError {
  const remedy =
    "start again: the broker then rebuilds the index from the chain, and keeps subscriptions; if this happens again, restore only the store from a backup, as docs/backup.md#repair says";
  return new StoreError("corrupt", `${description} is damaged: ${found}; ${remedy}`);
}

function sqliteCodeOf(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  if ("errcode" in error && typeof error.errcode === "number") return error.errcode;
  return codeByMessage.get(error.message) ?? (isNumberTooLarge(error) ? corrupt : undefined);
}
