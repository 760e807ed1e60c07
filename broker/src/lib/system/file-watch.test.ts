import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { FileWatch } from "./file-watch.ts";

let folder: string;
let files: readonly [string, ...string[]];
let lost: string[];
let look: (() => void) | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "file-watch-"));
  files = [join(folder, "chain.sqlite"), join(folder, "store.sqlite")];
  for (const file of files) writeFileSync(file, "");
  lost = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function after(_delayMs: number, action: () => void): () => void {
  look = action;
  return () => void (look = undefined);
}

async function start(): Promise<FileWatch> {
  const watch = new FileWatch({ files, clock: { after }, onLost: (file) => void lost.push(file) });
  await watch.start();
  return watch;
}

/** Lets the watch look once, and waits until it has looked. */
async function lookOnce(): Promise<void> {
  const due = look;
  look = undefined;
  due?.();
  await expect.poll(() => look !== undefined || lost.length > 0).toBe(true);
}

it("reports nothing while both files grow at their paths, and nothing about a path that had no file", async () => {
  files = [...files, join(folder, "none")];
  const watch = await start();
  writeFileSync(files[0], "more");
  await lookOnce();
  expect([lost, await watch.findLost()]).toEqual([[], undefined]);
  watch.stop();
  expect(look).toBeUndefined();
});

it.each([
  ["the folder is deleted", () => rmSync(folder, { recursive: true })],
  ["a file is moved away", () => renameSync(files[0], `${files[0]}.old`)],
  [
    "another file takes the path",
    () => {
      writeFileSync(`${files[0]}.new`, "");
      renameSync(`${files[0]}.new`, files[0]);
    },
  ],
] as const)("reports the file once if %s", async (_, takeAway) => {
  const watch = await start();
  takeAway();
  await lookOnce();
  expect([lost, look]).toEqual([[files[0]], undefined]);
  expect(await watch.findLost()).toBe(files[0]);
  watch.stop();
});
