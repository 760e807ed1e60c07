import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";

const table = "/proc/net/tcp";
/** Fields of a line of the table. */
const fields = { localAddress: 1, inode: 9 };

/** Whether this system tells which process has a connection. */
export const canFindSocketOwner = existsSync(table);

/** The process of `pids` that has the end of a connection with this port; undefined where it is none of them, or gone. */
export function findSocketOwner(port: number, pids: readonly number[]): number | undefined {
  if (!canFindSocketOwner) return undefined;
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const inodes = readFileSync(table, "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter((line) => line[fields.localAddress]?.endsWith(suffix))
    .map((line) => `socket:[${line[fields.inode]}]`);
  return pids.find((pid) => hasFile(pid, inodes));
}

function hasFile(pid: number, names: readonly string[]): boolean {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).some((file) => names.includes(linkOf(`${folder}/${file}`)));
  } catch {
    return false; // The process has ended.
  }
}

function linkOf(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return ""; // It was closed meanwhile.
  }
}
