import { existsSync, readdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { isWithin } from "../lib/system/is-within.ts";
import { type DataFolder, openDataFolder } from "../lib/system/data-folder.ts";
import { syncFolder } from "../lib/system/sync-folder.ts";
import { copyFile } from "./copy-file.ts";
import { type BackupFile, type Manifest, readManifest } from "./manifest.ts";
import { isRestoreUnfinished, markRestored, markUnfinished } from "./restored.ts";

/**
 * Copies a backup to a new data folder, and compares each file with the manifest. A broker that starts on this folder makes no
 * deliveries until an operator activates it. A restore that fails removes the copied files, and the folder if it created the folder.
 * @throws Error that says why.
 */
export async function restoreBackup(from: string, to: string, now: () => number): Promise<Manifest> {
  const source = resolve(from);
  const manifest = readManifest(source);
  if (await isWithin(to, source)) {
    throw new Error(
      `${resolve(to)} is in the backup: restore to a folder elsewhere, so that you can delete the backup later.`,
    );
  }
  if (isRestoreUnfinished(to)) {
    throw new Error(`${resolve(to)} is what a restore left that was cut short: delete the folder, then restore again.`);
  }
  if (existsSync(to) && readdirSync(to).length > 0) {
    throw new Error(
      `${resolve(to)} is not empty: restore to a new folder, and keep this one until you no longer need it.`,
    );
  }
  const isNew = !existsSync(to);
  const folder = openDataFolder(to);
  try {
    await copyAll(source, folder, manifest);
    markRestored(folder.path("."), { madeAt: manifest.madeAt, restoredAt: new Date(now()).toISOString() });
    syncFolder(folder.path("."));
    return manifest;
  } catch (error) {
    for (const name of readdirSync(folder.path("."))) rmSync(folder.path(name), { force: true });
    if (isNew) rmSync(folder.path("."), { recursive: true, force: true });
    throw error;
  } finally {
    folder.release();
  }
}

async function copyAll(source: string, folder: DataFolder, { files }: Manifest): Promise<void> {
  markUnfinished(folder.path("."));
  for (const file of files) {
    const copied = await copyFile(join(source, file.name), folder.path(file.name));
    checkSame(join(source, file.name), file, copied);
  }
}

function checkSame(path: string, expected: BackupFile, copied: Pick<BackupFile, "bytes" | "sha256">): void {
  if (copied.bytes === expected.bytes && copied.sha256 === expected.sha256) return;
  throw new Error(
    `${path} is not as it was when the backup was made (${copied.bytes} bytes, ${expected.bytes} then): use another backup.`,
  );
}
