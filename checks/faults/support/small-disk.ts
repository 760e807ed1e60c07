import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A file system of its own that is soon full. */
export interface SmallDisk extends Disposable {
  readonly path: string;
}

/** Undefined where this user may not mount. */
export function tryMountSmallDisk(kibibytes: number): SmallDisk | undefined {
  const path = mkdtempSync(join(tmpdir(), "stele-disk-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${kibibytes}k`, "tmpfs", path], { stdio: "ignore" });
  } catch {
    rmSync(path, { recursive: true });
    return undefined;
  }
  const release = (): void => {
    execFileSync("umount", [path]);
    rmSync(path, { recursive: true });
  };
  return { path, [Symbol.dispose]: release };
}
