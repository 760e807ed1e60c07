import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Marks a data folder that was restored: its broker calls no receiver until an operator allows it. */
const restoredFile = "restored.json";
/** Marks a data folder whose restore has not finished. */
const unfinishedFile = "restore.unfinished";

/** Marks a folder before anything is restored to it. */
export function markUnfinished(folder: string): void {
  writeFileSync(join(folder, unfinishedFile), "", { mode: 0o600, flush: true });
}

/** Marks a folder that has all files of a backup. `marks` says when the backup was made and restored. */
export function markRestored(folder: string, marks: { readonly madeAt: string; readonly restoredAt: string }): void {
  writeFileSync(join(folder, restoredFile), `${JSON.stringify(marks)}\n`, { mode: 0o600, flush: true });
  rmSync(join(folder, unfinishedFile));
}

/** Whether a restore to this folder was cut short. */
export function isRestoreUnfinished(folder: string): boolean {
  return existsSync(join(folder, unfinishedFile));
}

/** Whether the folder was restored, and no operator has allowed deliveries since. */
export function isRestored(folder: string): boolean {
  return existsSync(join(folder, restoredFile));
}

/** Removes the mark of a restored folder: its broker delivers from its next start on. Returns the content of the mark; undefined if there was none. */
export function activate(folder: string): string | undefined {
  if (!isRestored(folder)) return undefined;
  const marks = readFileSync(join(folder, restoredFile), "utf8").trim();
  rmSync(join(folder, restoredFile));
  return marks;
}
