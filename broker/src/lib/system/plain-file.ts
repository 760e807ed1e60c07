import { closeSync, constants, fstatSync, openSync, readFileSync, readSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

/** Without `O_NONBLOCK`, opening a pipe would wait for a writer, for ever if there is none. */
const flags = constants.O_RDONLY | constants.O_NONBLOCK;

/** Opens a file for reading. @throws Error for a pipe, which another read would find empty, and for anything else that is not a file. */
export async function openPlainFile(path: string): Promise<FileHandle> {
  const file = await open(path, flags);
  try {
    if ((await file.stat()).isFile()) return file;
    throw new Error("it is not a file");
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Reads a file. @throws Error with the path for a pipe, as {@link openPlainFile}; Error EISDIR for a folder. */
export function readPlainFile(path: string): Buffer {
  const opened = openSync(path, flags);
  try {
    const stats = fstatSync(opened);
    if (!stats.isFile() && !stats.isDirectory()) throw new Error(`${path} is not a file`);
    return readFileSync(opened);
  } finally {
    closeSync(opened);
  }
}

/** Reads the last `bytesMax` bytes of a file. @throws Error for anything that is not a file. */
export function readPlainFileEnd(path: string, bytesMax: number): Buffer {
  const opened = openSync(path, flags);
  try {
    const stats = fstatSync(opened);
    if (!stats.isFile()) throw new Error(`${path} is not a file`);
    const bytes = Buffer.alloc(Math.min(bytesMax, stats.size));
    return bytes.subarray(0, readSync(opened, bytes, 0, bytes.length, stats.size - bytes.length));
  } finally {
    closeSync(opened);
  }
}
