import { execFileSync } from "node:child_process";
import { closeSync, constants, existsSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { silentLogger } from "../lib/logger.ts";
import { VirtualClock } from "../ports/testing/virtual-clock.ts";
import { BackupService } from "./backup-service.ts";
import { makeBackup } from "./make-backup.ts";
import { RequestFiles } from "./request-files.ts";

/** The calls that blocked this thread, as long as it is defined. */
const blocking = vi.hoisted((): { calls: string[] | undefined } => ({ calls: undefined }));

vi.mock(import("node:fs"), async (importOriginal) => {
  const original = await importOriginal();
  const recorded = Object.entries(original).map(([name, value]) => {
    if (typeof value !== "function" || !name.endsWith("Sync")) return [name, value] as const;
    const call = (...given: readonly unknown[]): unknown => {
      blocking.calls?.push(`${name} ${String(given[0])}`);
      return Reflect.apply(value, undefined, given);
    };
    return [name, call] as const;
  });
  return Object.fromEntries(recorded);
});

const holds = { data: undefined, keys: async () => async () => {} };

let root: string;
let folder: string;
let target: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "stele-slow-disk-"));
  [folder, target] = [join(root, "data"), join(root, "backup")];
  mkdirSync(folder);
  for (const name of ["chain.sqlite", "store.sqlite", "keys.sqlite"]) writeFileSync(join(folder, name), name);
});
afterEach(() => rmSync(root, { recursive: true }));

/** Ends an opening of a pipe that waits for a writer. */
function release(pipe: string): void {
  closeSync(openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK));
}

it("makes or refuses a backup without a synchronous call on the target, which would block the broker's thread", async () => {
  blocking.calls = [];
  await makeBackup(target, { folder, holds, version: "test", now: () => 0 });
  await expect(makeBackup(target, { folder, holds, version: "test", now: () => 0 })).rejects.toThrow(
    "not an empty folder",
  );
  const { calls } = blocking;
  blocking.calls = undefined;
  expect(calls.filter((call) => call.includes(target))).toEqual([]);
});

it("stops although opening a file of the data folder hangs, and removes the unfinished backup", async () => {
  const pipe = join(folder, "signer.key");
  execFileSync("mkfifo", [pipe]); // Opening it hangs until somebody writes.
  const clock = new VirtualClock();
  const service = new BackupService({
    folder,
    clock,
    logger: silentLogger,
    makeBackup: (path, signal) => makeBackup(path, { folder, holds, version: "test", now: () => 0, signal }),
  });
  service.start();
  new RequestFiles(folder).ask({ id: "9a3f1d7e-4f0d-4c33-8a44-0d1f5b1c2a3b", target });
  await clock.advance(1_000);
  await vi.waitFor(() => expect(existsSync(join(target, "store.sqlite"))).toBe(true));
  await service.stop();
  expect(existsSync(target)).toBe(false);
  release(pipe);
  // Without a reader, such an open fails: so nobody has left the pipe open.
  await vi.waitFor(() => expect(() => release(pipe)).toThrow("ENXIO"));
});

it("refuses a backup while a file operation of an earlier one hangs, since each may keep a thread of the broker", async () => {
  const pipe = join(folder, "signer.key");
  execFileSync("mkfifo", [pipe]);
  const options = { folder, holds, version: "test", now: () => 0 };
  const reason = new Error("stopped");
  const stopping = new AbortController();
  const first = makeBackup(target, { ...options, signal: stopping.signal });
  await vi.waitFor(() => expect(existsSync(join(target, "store.sqlite"))).toBe(true));
  stopping.abort(reason);
  await expect(first).rejects.toBe(reason);
  await expect(makeBackup(target, options)).rejects.toThrow("does not answer an earlier backup");
  release(pipe);
  await vi.waitFor(() => expect(() => release(pipe)).toThrow("ENXIO"));
  rmSync(pipe);
  expect((await makeBackup(target, options)).files).toHaveLength(3);
});
