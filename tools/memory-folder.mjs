// Where the temporary files of a test run are. Types and contract: memory-folder.d.mts.
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { freemem } from "node:os";
import { join } from "node:path";

/** All tests together take a few hundred megabytes at once. */
const roomBytesMin = 4 * 1024 ** 3;

export function useMemoryFolder({ memory = "/dev/shm", environment = process.env, bytesMin = roomBytesMin } = {}) {
  if (environment.TMPDIR !== undefined || !hasRoom(memory, bytesMin)) return undefined;
  const folder = mkdtempSync(join(memory, "stele-tests-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  if (!runsPrograms(folder)) {
    remove();
    return undefined;
  }
  process.on("exit", remove);
  chmodSync(folder, 0o1777); // PostgreSQL's servers run as another user if this one is root.
  environment.TMPDIR = folder;
  return folder;
}

function hasRoom(memory, bytesMin) {
  if (!existsSync(memory) || freemem() < bytesMin) return false;
  const { bavail, bsize } = statfsSync(memory);
  return bavail * bsize >= bytesMin;
}

/** Containers often forbid it there, and some tests run what they have built. */
function runsPrograms(folder) {
  const program = join(folder, "program");
  writeFileSync(program, "#!/bin/sh\n", { mode: 0o700 });
  const { status } = spawnSync(program);
  rmSync(program);
  return status === 0;
}
