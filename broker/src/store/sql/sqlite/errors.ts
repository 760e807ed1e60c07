import { StoreError, type StoreFault } from "../store-error.ts";

interface Advice {
  readonly fault: StoreFault;
  readonly text: string;
}

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
  [11, { fault: "corrupt", text: "is damaged: restore it from a backup" }],
  [13, { fault: "full", text: "cannot grow, the disk is full: free some space; nothing of this change was kept" }],
  [
    14,
    { fault: "cannot-open", text: "cannot be opened: check that its folder exists and may be written by this user" },
  ],
  [
    26,
    {
      fault: "corrupt",
      text: "is not a database, or is damaged: restore it from a backup, or use another data folder",
    },
  ],
]);

/** The one place where SQLite's errors are recognised. What it did not throw comes back as it is. */
export function toStoreError(error: unknown, description: string): unknown {
  const code = sqliteCodeOf(error);
  if (code === undefined) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const advice = adviceByCode.get(code & 0xff);
  if (advice === undefined) return new StoreError("other", `${description}: ${reason}`, error);
  return new StoreError(advice.fault, `${description} ${advice.text} (SQLite ${code}: ${reason})`, error);
}

function sqliteCodeOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error)) return undefined;
  return typeof error.errcode === "number" ? error.errcode : undefined;
}
