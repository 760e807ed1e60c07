import { closeSync, constants, fchownSync, fstatSync, openSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/**
 * The end of a message about a file that this process cannot use. Names the owner of the file, or of the nearest folder above it that this process can see, and
 * says what to do. Empty if the system has no users.
 */
export function describeOwner(path: string, user = process.getuid?.()): string {
  const found = findNearest(path);
  if (user === undefined || found === undefined) return "";
  const { stats } = found;
  return `; ${found.path} belongs to user ${stats.uid} (mode ${formatMode(stats.mode)}), and this process runs as user ${user}: ${remedyFor(path, found, user)}`;
}

/** The system's error for a file that this process cannot use, with what to do about it. */
export function describeFileError(path: string, error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "EACCES" || code === "EPERM") return `${message}${describeOwner(path)}`;
  if (code !== "EISDIR") return message;
  return `${message}; ${path} is a folder: name a file, or remove the folder (containers get one for a mounted file that does not exist)`;
}

/**
 * As root, gives a file of root to the owner of its folder, so that a broker that runs as that user can open it. That user may have replaced the file, for
 * example by a link to a file of the system. So a file of another user, or with several hard links, keeps its owner. @throws Error for a symbolic link.
 */
export function giveToFolderOwner(file: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(file));
  if (uid === 0) return;
  const opened = openSync(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const stats = fstatSync(opened);
    if (stats.isFile() && stats.nlink === 1 && stats.uid === 0) fchownSync(opened, uid, gid);
  } finally {
    closeSync(opened);
  }
}

export function formatMode(mode: number): string {
  return (mode & 0o777).toString(8).padStart(4, "0");
}

interface Found {
  readonly path: string;
  readonly stats: Stats;
}

/** What the operator can do. Suggests a new owner only for the file itself: the folder above it may belong to the system. */
function remedyFor(file: string, { path, stats }: Found, user: number): string {
  if (stats.uid === user) return `chmod u+rw${stats.isDirectory() ? "x" : ""} ${path}`;
  const asOwner = `run the broker as user ${stats.uid}`;
  if (path === file) return `${asOwner}, or give it the file: chown ${user} ${path}`;
  return `${asOwner}, or create ${file} for it, in a folder that it may open: chown ${user} ${file}`;
}

/** The file, or the nearest folder above it that this process can see. */
function findNearest(path: string): Found | undefined {
  try {
    return { path, stats: statSync(path) };
  } catch {
    return dirname(path) === path ? undefined : findNearest(dirname(path));
  }
}
