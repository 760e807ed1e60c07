import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const folderMode = 0o700;
const fileMode = 0o600;

/** Path of a file among the user's other settings (XDG Base Directory 0.8). */
export function userFile(name: string, env: Readonly<Record<string, string | undefined>>, home: string): string {
  const folder = env["XDG_CONFIG_HOME"]?.startsWith("/") === true ? env["XDG_CONFIG_HOME"] : join(home, ".config");
  return join(folder, "stele", name);
}

/** Reads a file; undefined if there is none. @throws Error if it cannot be read. */
export function readUserFile(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Replaces the file in one step, so that a process killed before that leaves the old file. Only the owner can read or write the new one.
 * @throws Error if it cannot be written.
 */
export function writeUserFile(file: string, text: string): void {
  const draft = `${file}.${process.pid}.draft`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: folderMode });
    writeFileSync(draft, text, { mode: fileMode });
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}
