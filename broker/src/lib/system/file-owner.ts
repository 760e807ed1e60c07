import { chownSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * End of a message about a file that this process cannot use: the owner of the file, or of the nearest folder above it that this process can see,
 * and what to do. Empty if the system has no users.
 */
export function describeOwner(path: string, user = process.getuid?.()): string {
  const stats = findStats(path);
  if (stats === undefined) return dirname(path) === path ? "" : describeOwner(dirname(path), user);
  if (user === undefined) return "";
  return `; ${path} belongs to user ${stats.uid} (mode ${formatMode(stats.mode)}), and this process runs as user ${user}: ${remedyFor(path, stats, user)}`;
}

/** As root, gives the file to the owner of its folder: a broker that runs as that user could not open it otherwise. */
export function giveToFolderOwner(file: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(file));
  if (uid !== 0) chownSync(file, uid, gid);
}

export function formatMode(mode: number): string {
  return (mode & 0o777).toString(8).padStart(4, "0");
}

function remedyFor(path: string, stats: Stats, user: number): string {
  if (stats.uid === user) return `chmod u+rw${stats.isDirectory() ? "x" : ""} ${path}`;
  return `run the broker as user ${stats.uid}, or give it the file: chown ${user} ${path}`;
}

function findStats(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}
