/** Primary codes of SQLite for what says nothing of the file's content: busy, locked, no memory, I/O error, full, cannot open, protocol. */
const CODES: ReadonlySet<number> = new Set([5, 6, 7, 10, 13, 14, 15]);

/** The texts of those codes (sqlite3_errstr): what `all` of `@photostructure/sqlite` 1 throws has no code. */
const TEXTS: ReadonlySet<string> = new Set([
  "database is locked",
  "database table is locked",
  "out of memory",
  "disk I/O error",
  "database or disk is full",
  "unable to open database file",
  "locking protocol",
]);

/** Whether reading failed for a reason that may pass, and not because of what is in the file. */
export function isPassingFault(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ("errcode" in error && typeof error.errcode === "number") return CODES.has(error.errcode & 0xff);
  return TEXTS.has(error.message);
}
