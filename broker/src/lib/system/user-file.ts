import { closeSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { makeFolderSync } from "./make-folder.ts";

const fileMode = 0o600;
/** Pause between two tries to lock a file, in milliseconds. */
const againMs = 10;
/** Maximum number of tries to lock a file; a process holds the lock for milliseconds. */
const triesMax = 300;

type Environment = Readonly<Record<string, string | undefined>>;

/** Path of a file among the user's other settings (XDG Base Directory 0.8). Relative paths in the environment do not count. */
export function userFile(name: string, env: Environment): string {
  const { XDG_CONFIG_HOME: folder = "", HOME: home = "" } = env;
  if (isAbsolute(folder)) return join(folder, "stele", name);
  return join(isAbsolute(home) ? home : systemHome(), ".config", "stele", name);
}

/**
 * The home folder that the system knows for this user; `/`, as in container runtimes, if it knows none. A relative path, such as an empty HOME, would name files
 * of the current folder: its owner could choose the broker that gets the user's key, and the registry that `stele verify` trusts.
 */
function systemHome(): string {
  try {
    const { homedir } = userInfo();
    return isAbsolute(homedir) ? homedir : "/";
  } catch {
    return "/"; // The system does not know the user.
  }
}

/** Reads a file; undefined if there is none. @throws Error if it cannot be read. */
export function readUserFile(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

/**
 * Changes a file: `change` gets its text, or undefined if there is none, and returns the new one. Processes that change the file at the same time wait for
 * each other. A process killed before the end leaves the old file. Only the owner can read or write the new one.
 * @throws Error if the file cannot be read or written, or stays locked; the error of `change`.
 */
export async function changeUserFile(file: string, change: (text: string | undefined) => string): Promise<void> {
  makeFolderSync(dirname(file));
  // The lock is the draft of the new file: the rename stores the text and unlocks in one step.
  const lock = `${file}.lock`;
  const descriptor = await openLock(lock);
  try {
    try {
      writeFileSync(descriptor, change(readUserFile(file)));
    } finally {
      closeSync(descriptor);
    }
    renameSync(lock, file);
  } catch (error) {
    rmSync(lock, { force: true });
    throw error;
  }
}

/** Creates the lock, and waits while another process has it. @throws Error if it stays or cannot be created. */
async function openLock(lock: string): Promise<number> {
  for (let tries = 1; ; tries += 1) {
    try {
      return openSync(lock, "wx", fileMode);
    } catch (error) {
      if (!isCode(error, "EEXIST")) throw error;
      if (tries === triesMax)
        throw new Error(`${lock} exists: if no stele command is running, remove it`, { cause: error });
      await new Promise((resolve) => setTimeout(resolve, againMs));
    }
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
