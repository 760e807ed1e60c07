import { chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { silentLogger } from "../lib/logger.ts";
import { pause } from "../lib/pause.ts";
import { openDataFolder } from "../lib/system/data-folder.ts";
import { VirtualClock } from "../ports/testing/virtual-clock.ts";
import { askBroker } from "./ask-broker.ts";
import { BackupService } from "./backup-service.ts";
import { formatManifest, manifestFile, toManifest } from "./manifest.ts";
import { RequestFiles } from "./request-files.ts";

const manifest = toManifest({ version: "1", madeAt: "2026-11-23T01:02:03.456Z", files: [] });
let [root, folder, target] = ["", "", ""];
let timer: VirtualClock;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "stele-ask-"));
  [folder, target] = [join(root, "data"), join(root, "backup")];
  mkdirSync(folder);
  timer = new VirtualClock();
});
afterEach(() => rmSync(root, { recursive: true }));

/** What the command prints: the manifest, or the reason of its failure. */
function ask(): Promise<unknown> {
  return askBroker(folder, { target, timer }).catch((error: unknown) => (error as Error).message);
}

/** Answers as a broker that has made the backup. */
function answer(): void {
  const files = new RequestFiles(folder);
  const request = files.take();
  expect(request?.target).toBe(target);
  files.answer(request?.id ?? "", { status: "done", manifest: formatManifest(manifest) });
}

it("returns the manifest of a backup in the target", async () => {
  const asked = ask();
  mkdirSync(target);
  writeFileSync(join(target, manifestFile), formatManifest(manifest));
  answer();
  await timer.advance(200);
  expect(await asked).toEqual(manifest);
});

it("fails if the broker made the backup where this process does not see it, for example in a temporary folder of its own", async () => {
  const asked = ask();
  answer();
  await timer.advance(200);
  expect(await asked).toBe(
    `the broker made the backup in its own ${target}, which this command does not see: name a folder that both of them see`,
  );
});

it("fails within six seconds if the broker removed the request without an answer, because it could not read it", async () => {
  const asked = ask();
  new RequestFiles(folder).withdraw();
  await timer.advance(6_000);
  expect(timer.timers).toBe(0);
  expect(await asked).toMatch(/^the broker could not read the request.*Run this command as its user, or as root\.$/);
});

const makeBackup = () => Promise.reject(new Error("nobody asked"));

/** Starts the broker's part, which forgets what an earlier run left. */
async function startAgain(): Promise<void> {
  const service = new BackupService({ folder, clock: new VirtualClock(), logger: silentLogger, makeBackup });
  service.start();
  await service.stop();
}

it.each<[string, (files: RequestFiles) => void]>([
  ["before it takes the request", () => {}],
  ["during the backup", (files) => files.answer(files.take()?.id ?? "", { status: "running", pid: process.pid })],
])("fails within six seconds if the broker is killed %s, and started again at once", async (_, serve) => {
  const asked = ask();
  serve(new RequestFiles(folder));
  await startAgain();
  await timer.advance(6_000);
  expect(timer.timers).toBe(0);
  expect(await asked).toMatch(/was started again meanwhile/);
  expect(readdirSync(folder)).toEqual([]);
});

it("fails within six seconds if the broker cannot write how the backup ended, such as on a full disk", async () => {
  const clock = new VirtualClock();
  let wasAsked = false;
  const makeUnwritable = async (): Promise<never> => {
    wasAsked = true;
    const [answer = ""] = readdirSync(folder).filter((name) => name.startsWith("backup.answer-"));
    mkdirSync(join(folder, `${answer}.unfinished`)); // Where the next answer is written first.
    throw new Error("the disk is full");
  };
  const service = new BackupService({ folder, clock, logger: silentLogger, makeBackup: makeUnwritable });
  service.start();
  const asked = ask();
  await clock.advance(1_000);
  expect(wasAsked).toBe(true);
  await timer.advance(6_000);
  expect(timer.timers).toBe(0);
  expect(await asked).toMatch(/could not read the request or write its answer/);
  await service.stop();
});

const other = "00000000-0000-4000-8000-000000000001";
const runs = { status: "running", pid: process.pid } as const;

it("waits while the broker makes a backup for somebody else", async () => {
  const running = openDataFolder(folder); // Locked, as by a running broker.
  const files = new RequestFiles(folder);
  files.answer(other, runs);
  const asked = ask();
  for (let passed = 0; passed < 600; passed += 30) {
    await timer.advance(30_000);
    files.renew(other);
  }
  expect(timer.timers).toBe(1);
  files.answer(other, { status: "failed", reason: "the disk is full" });
  files.answer(files.take()?.id ?? "", { status: "failed", reason: "the disk is full" });
  await timer.advance(1_000);
  expect(await asked).toBe("the broker, which writes the backup with its own rights, refused: the disk is full");
  running.release();
});

const silence = /^the broker gave no sign of life for 60 s: it hangs, may not remove files .*Or another stele command/;

it.each<[string, (files: RequestFiles) => void]>([
  ["does not take the request", () => {}],
  ["hangs in the middle of this backup", (files) => files.answer(files.take()?.id ?? "", runs)],
  ["hangs in the middle of somebody else's backup", (files) => files.answer(other, runs)],
  ["left an answer that another user has to read", () => writeFileSync(join(folder, `backup.answer-${other}`), "")],
])("fails after a minute, and leaves no request, if the broker %s", async (_, prepare) => {
  const running = openDataFolder(folder); // Locked, as by a running broker.
  const asked = ask();
  prepare(new RequestFiles(folder));
  await timer.advance(55_000);
  expect(timer.timers).toBe(1);
  await timer.advance(10_000);
  expect(timer.timers).toBe(0);
  expect(await asked).toMatch(silence);
  expect(readdirSync(folder)).not.toContain("backup.request");
  running.release();
});

it("says why it fails even if it cannot withdraw the request", async () => {
  const running = openDataFolder(folder);
  const asked = ask();
  new RequestFiles(folder).withdraw();
  mkdirSync(join(folder, "backup.request")); // Which cannot be removed like a file.
  await timer.advance(65_000);
  expect(await asked).toMatch(silence);
  running.release();
});

it("waits for a long backup, during which the broker gives signs of life", async () => {
  const makeLongBackup = async (): Promise<never> => {
    await pause(timer, 600_000);
    throw new Error("the disk is full");
  };
  const service = new BackupService({ folder, clock: timer, logger: silentLogger, makeBackup: makeLongBackup });
  service.start();
  const asked = ask();
  await timer.advance(590_000);
  expect(timer.timers).toBeGreaterThan(1);
  await timer.advance(20_000);
  expect(await asked).toMatch(/refused: the disk is full$/);
  await service.stop();
});

it.runIf(process.getuid?.() === 0)(
  "as root, gives the request to the owner of the data folder, who runs the broker",
  async () => {
    chownSync(folder, 65_534, 65_534);
    const asked = ask();
    expect(statSync(join(folder, "backup.request"))).toMatchObject({ uid: 65_534, gid: 65_534 });
    new RequestFiles(folder).withdraw();
    await timer.advance(6_000);
    await asked;
  },
);
