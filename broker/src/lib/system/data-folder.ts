import { accessSync, constants, existsSync, mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";

/** A data folder that this process alone uses until it lets go. */
export interface DataFolder {
  /** Absolute path of a file in the folder. */
  path(file: string): string;
  release(): void;
}

/** The folder cannot be used; the message says why and what to do. */
export class DataFolderError extends Error {
  override readonly name = "DataFolderError";
}

const folderMode = 0o700;

/**
 * Makes the folder when it is missing and takes it for this process. The lock is one of the operating system, held through SQLite, so
 * that it goes with the process however it ends.
 * @throws DataFolderError when the folder cannot be made, read or written, or another process has it.
 */
export function openDataFolder(folder: string): DataFolder {
  const root = resolve(folder);
  makeUsable(root);
  const lock = takeLock(root);
  return { path: (file) => resolve(root, file), release: () => lock.close() };
}

function makeUsable(root: string): void {
  try {
    makeFolder(root);
    accessSync(root, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw new DataFolderError(`The data folder ${root} cannot be read and written: ${messageOf(cause)}`, { cause });
  }
}

/** Step by step, since `recursive` of Node 20 never ends below a folder that refuses with ENOENT, such as /proc. */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  mkdirSync(folder, { mode: folderMode });
}

function takeLock(root: string): InstanceType<typeof DatabaseSync> {
  try {
    const lock = new DatabaseSync(resolve(root, "lock"));
    lock.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    return lock;
  } catch (cause) {
    const message = messageOf(cause);
    if (/locked|busy/i.test(message)) {
      throw new DataFolderError(
        `The data folder ${root} is in use by another broker. Stop that one, or give this one another folder.`,
        { cause },
      );
    }
    throw new DataFolderError(`The data folder ${root} cannot be locked: ${message}`, { cause });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
