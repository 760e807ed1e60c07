import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { silentLogger } from "../lib/logger.ts";
import { type DataFolder, openDataFolder } from "../lib/system/data-folder.ts";
import { VirtualClock } from "../ports/testing/virtual-clock.ts";
import { askBroker } from "./ask-broker.ts";
import { BackupService } from "./backup-service.ts";
import { RequestFiles } from "./request-files.ts";

let root: string;
/** Locked, as by a running broker. */
let folder: DataFolder;

beforeEach(() => {
  vi.useFakeTimers();
  root = mkdtempSync(join(tmpdir(), "stele-ask-broker-"));
  folder = openDataFolder(root);
});
afterEach(() => {
  vi.useRealTimers();
  folder.release();
  rmSync(root, { recursive: true });
});

const makeBackup = () => Promise.reject(new Error("nobody asked"));

/** Starts the broker's part, which forgets what an earlier run left. */
async function startAgain(): Promise<void> {
  const service = new BackupService({ folder: root, clock: new VirtualClock(), logger: silentLogger, makeBackup });
  service.start();
  await service.stop();
}

it.each<[string, (files: RequestFiles) => void]>([
  ["before it takes the request", () => {}],
  ["during the backup", (files) => files.answer(files.take()?.id ?? "", { status: "running", pid: process.pid })],
])("fails if the broker is killed %s, and started again at once", async (_, serve) => {
  const asked = askBroker(root, join(root, "../backup")).catch((error: Error) => error.message);
  serve(new RequestFiles(root));
  await startAgain();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await Promise.race([asked, Promise.resolve("still waits")])).toMatch(/was started again meanwhile/);
  expect(readdirSync(root).filter((name) => name.startsWith("backup"))).toEqual([]);
});

it("waits while the broker makes a backup for somebody else", async () => {
  const asked = askBroker(root, join(root, "../backup")).catch((error: Error) => error.message);
  await vi.advanceTimersByTimeAsync(600_000);
  expect(await Promise.race([asked, Promise.resolve("still waits")])).toBe("still waits");
  const files = new RequestFiles(root);
  files.answer(files.take()?.id ?? "", { status: "failed", reason: "the disk is full" });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await asked).toBe("the disk is full");
});
