import { closeSync, fsyncSync, openSync } from "node:fs";

/** Syncs a folder's list of files to disk. */
export function syncFolder(folder: string): void {
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
