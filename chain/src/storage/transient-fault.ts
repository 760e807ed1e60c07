/** Primary codes of SQLite for errors that say nothing about the file's content: busy, locked, no memory, I/O error, full, cannot open, protocol. */
const CODES: ReadonlySet<number> = new Set([5, 6, 7, 10, 13, 14, 15]);

const IO_ERROR = 10;
const IO_ERROR_TEXT = "disk I/O error";

/** The texts of those codes (sqlite3_errstr): errors of `all` in `@photostructure/sqlite` 1 have no code. */
const TEXTS: ReadonlySet<string> = new Set([
  "database is locked",
  "database table is locked",
  "out of memory",
  IO_ERROR_TEXT,
  "database or disk is full",
  "unable to open database file",
  "locking protocol",
]);

/** Whether SQLite failed for a temporary reason, and not because of the file's content. */
export function isTransientFault(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = findCode(error);
  return code === undefined ? TEXTS.has(error.message) : CODES.has(code);
}

/** Whether a read failed because of the disk, or because the file is too short. */
export function isReadFault(error: unknown): error is Error {
  return error instanceof Error && (findCode(error) ?? IO_ERROR) === IO_ERROR && error.message === IO_ERROR_TEXT;
}

function findCode(error: Error): number | undefined {
  return "errcode" in error && typeof error.errcode === "number" ? error.errcode & 0xff : undefined;
}
