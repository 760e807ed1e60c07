// Where the temporary files of a test run are. Types and contract: memory-folder.d.mts.
import { spawnSync } from "node:child_process";
import { chmodSync, lstatSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { freemem } from "node:os";
import { join } from "node:path";

/** All tests together take a few hundred megabytes at once. */
const roomBytesMin = 4 * 1024 ** 3;

export function useMemoryFolder({ memory = "/dev/shm", environment = process.env, bytesMin = roomBytesMin } = {}) {
  if (environment.TMPDIR !== undefined) return undefined;
  removeLeftovers(memory);
  const folder = hasRoom(memory, bytesMin) ? createFolder(memory) : undefined;
  if (folder === undefined) return undefined;
  process.on("exit", () => remove(folder));
  environment.TMPDIR = folder;
  return folder;
}

/** Containers often forbid programs in memory, and some tests run programs that they built. */
export function runsPrograms(folder) {
  const program = join(folder, "program");
  writeFileSync(program, "#!/bin/sh\n", { mode: 0o700 });
  const { status } = spawnSync(program);
  rmSync(program);
  return status === 0;
}

/** Killed runs could not remove their folders. */
function removeLeftovers(memory) {
  for (const name of attempt(() => readdirSync(memory)) ?? []) {
    const [, pid] = /^stele-tests-(\d+)-/.exec(name) ?? [];
    const folder = join(memory, name);
    if (pid !== undefined && isOwn(folder) && isGone(Number(pid))) remove(folder);
  }
}

function isOwn(folder) {
  return attempt(() => lstatSync(folder).uid === process.getuid()) === true;
}

function isGone(pid) {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error.code === "ESRCH";
  }
}

function hasRoom(memory, bytesMin) {
  // Node.js before 20.13 does not know the limit of a container.
  if ((process.availableMemory?.() ?? freemem()) < bytesMin) return false;
  const room = attempt(() => statfsSync(memory));
  return room !== undefined && room.bavail * room.bsize >= bytesMin;
}

function createFolder(memory) {
  const folder = attempt(() => mkdtempSync(join(memory, `stele-tests-${process.pid}-`)));
  if (folder === undefined || attempt(() => isUsable(folder)) === true) return folder;
  remove(folder);
  return undefined;
}

function isUsable(folder) {
  chmodSync(folder, 0o1777); // PostgreSQL's servers run as another user if this one is root.
  return runsPrograms(folder);
}

/** Removes the folder. If a process still writes into it, the next run removes the rest. */
function remove(folder) {
  attempt(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
}

/** Undefined if the action fails: tests run without a folder in memory, too. */
function attempt(action) {
  try {
    return action();
  } catch {
    return undefined;
  }
}
