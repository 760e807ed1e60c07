import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";

const table = "/proc/net/tcp";
/** Numbers of the columns of `table`. */
const fields = { localAddress: 1, remoteAddress: 2, inode: 9 };

/** The ports of a connection whose two ends are on this machine. `from` is the port of the process that made the connection. */
export interface Ends {
  readonly from: number;
  readonly to: number;
}

/** Whether this system shows which process has a connection. */
export const canFindSocketOwner = existsSync(table);

/**
 * The process of `pids` that made a connection; undefined if none of them did, or if that process has ended. Compares the ports of both ends,
 * because the system uses one local port for several connections with different targets.
 */
export function findSocketOwner({ from, to }: Ends, pids: readonly number[]): number | undefined {
  if (!canFindSocketOwner) return undefined;
  const inodes = readFileSync(table, "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter((line) => hasPort(line[fields.localAddress], from) && hasPort(line[fields.remoteAddress], to))
    .map((line) => `socket:[${line[fields.inode]}]`);
  return pids.find((pid) => hasFile(pid, inodes));
}

function hasPort(address: string | undefined, port: number): boolean {
  return address?.endsWith(`:${port.toString(16).toUpperCase().padStart(4, "0")}`) ?? false;
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
    return ""; // The process has closed the file meanwhile.
  }
}
