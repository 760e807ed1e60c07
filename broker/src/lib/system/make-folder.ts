import { mkdirSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";

const mode = 0o700;

/**
 * Creates a folder and its parents, for their owner only. Returns whether it created the folder. One level at a time: with `recursive`, Node 20 never
 * returns below a folder that refuses with ENOENT, such as /proc.
 * @throws Error of `mkdir`.
 */
export async function makeFolder(folder: string): Promise<boolean> {
  const make = () => mkdir(folder, { mode }).then(() => true, unlessThere);
  try {
    return await make();
  } catch (error) {
    if (!isCode(error, "ENOENT")) throw error;
    await makeFolder(dirname(folder));
    return make();
  }
}

/** As {@link makeFolder}. */
export function makeFolderSync(folder: string): void {
  try {
    makeOne(folder);
  } catch (error) {
    if (!isCode(error, "ENOENT")) throw error;
    makeFolderSync(dirname(folder));
    makeOne(folder);
  }
}

function makeOne(folder: string): void {
  try {
    mkdirSync(folder, { mode });
  } catch (error) {
    unlessThere(error);
  }
}

function unlessThere(error: unknown): false {
  if (isCode(error, "EEXIST")) return false;
  throw error;
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
