import { mkdirSync } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import { syncFolder } from "./sync-folder.ts";

const mode = 0o700;
/** Windows cannot sync a folder. */
const canSync = process.platform !== "win32";

/** Codes of a parent that this user may not open, and of file systems that sync no folders. */
const unsyncable: ReadonlySet<unknown> = new Set(["EACCES", "EPERM", "EINVAL"]);

/**
 * Creates a folder and its parents with access for their owner only. Syncs each to disk before it creates the next: a power loss may remove a folder whose
 * parent was not synced. If the folder exists, still syncs its parent, since an earlier try may have ended before that. Returns whether it created the folder.
 * Creates one level at a time: with `recursive`, Node 20 never returns if a parent refuses with ENOENT, as /proc does.
 * @throws Error of `mkdir`, or of the sync of a parent.
 */
export async function makeFolder(folder: string): Promise<boolean> {
  try {
    return await makeOne(folder);
  } catch (error) {
    if (!isCode(error, "ENOENT")) throw error;
    await makeFolder(dirname(folder));
    return makeOne(folder);
  }
}

/** As {@link makeFolder}. */
export function makeFolderSync(folder: string): void {
  try {
    makeOneSync(folder);
  } catch (error) {
    if (!isCode(error, "ENOENT")) throw error;
    makeFolderSync(dirname(folder));
    makeOneSync(folder);
  }
}

async function makeOne(folder: string): Promise<boolean> {
  const isNew = await mkdir(folder, { mode }).then(() => true, unlessThere);
  if (canSync) await sync(dirname(folder)).catch(unlessUnsyncable);
  return isNew;
}

async function sync(folder: string): Promise<void> {
  await using handle = await open(folder, "r");
  await handle.sync();
}

function makeOneSync(folder: string): void {
  try {
    mkdirSync(folder, { mode });
  } catch (error) {
    unlessThere(error);
  }
  try {
    if (canSync) syncFolder(dirname(folder));
  } catch (error) {
    unlessUnsyncable(error);
  }
}

function unlessUnsyncable(error: unknown): void {
  if (!(error instanceof Error && "code" in error && unsyncable.has(error.code))) throw error;
}

function unlessThere(error: unknown): false {
  if (isCode(error, "EEXIST")) return false;
  throw error;
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
