import { existsSync, readdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { isWithin } from "../lib/system/is-within.ts";
import { type DataFolder, FolderInUseError, openDataFolder } from "../lib/system/data-folder.ts";
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
  const isNew = !existsSync(to);
  if (!isNew && !isRestoreUnfinished(to)) requireEmpty(to); // Also before the lock, which is a file in the folder.
  const folder = lockFolder(to);
  try {
    if (isRestoreUnfinished(to)) {
      throw new Error(
        `${resolve(to)} is what a restore left that was cut short: ${deleteRestored}, then restore again.`,
      );
    }
    requireEmpty(to);
    return await fill(folder, { source, manifest, isNew, now });
  } finally {
    folder.release();
  }
}

/** A mount point cannot be deleted. */
export const deleteRestored = "delete the folder, or what is in it if it is a mount point";

const lockFiles = /^lock(?:-journal)?$/;

function requireEmpty(to: string): void {
  if (readdirSync(to).every((name) => lockFiles.test(name))) return;
  throw new Error(
    `${resolve(to)} is not empty: restore to a new folder, and keep this one until you no longer need it.`,
  );
}

/** Only a restore uses a folder that is empty or not restored yet. */
function lockFolder(to: string): DataFolder {
  try {
    return openDataFolder(to);
  } catch (error) {
    if (!(error instanceof FolderInUseError)) throw error;
    throw new Error(`another restore to ${resolve(to)} is running: wait until it has ended.`, { cause: error });
  }
}

interface FillOptions {
  readonly source: string;
  readonly manifest: Manifest;
  readonly isNew: boolean;
  readonly now: () => number;
}

async function fill(folder: DataFolder, { source, manifest, isNew, now }: FillOptions): Promise<Manifest> {
  try {
    await copyAll(source, folder, manifest);
    markRestored(folder.path("."), { madeAt: manifest.madeAt, restoredAt: new Date(now()).toISOString() });
    syncFolder(folder.path("."));
    return manifest;
  } catch (error) {
    for (const name of readdirSync(folder.path("."))) rmSync(folder.path(name), { force: true });
    if (isNew) rmSync(folder.path("."), { recursive: true, force: true });
    throw error;
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
