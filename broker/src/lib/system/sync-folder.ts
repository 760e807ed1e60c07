import { closeSync, fsyncSync, openSync } from "node:fs";

/** Writes to the disk which files a folder has. */
export function syncFolder(folder: string): void {
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
