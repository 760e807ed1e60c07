import { execFileSync } from "node:child_process";
import { mkdtempSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A small, separate file system. */
export interface SmallDisk extends Disposable {
  readonly path: string;
  /** Enlarges the file system to this size. */
  grow(kibibytes: number): void;
}

/** Mounts a memory file system of this size. @throws Error if this user may not mount. */
export function mountSmallDisk(kibibytes: number): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), "stele-disk-"));
  const mount = (options: string): void => {
    execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", path], { stdio: "ignore" });
  };
  try {
    mount(`size=${kibibytes}k`);
  } catch (error) {
    rmdirSync(path);
    throw error;
  }
  return {
    path,
    grow: (size) => mount(`remount,size=${size}k`),
    [Symbol.dispose]: () => {
      execFileSync("umount", [path]);
      rmdirSync(path);
    },
  };
}

/** Whether this user may mount. */
export const canMount = tryMount();

function tryMount(): boolean {
  try {
    using _disk = mountSmallDisk(16);
    return true;
  } catch {
    return false;
  }
}
