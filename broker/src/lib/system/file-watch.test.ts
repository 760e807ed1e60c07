import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { FileWatch } from "./file-watch.ts";
import { noteFile } from "./open-file.ts";

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

function createWatch(): FileWatch {
  const opened = files.flatMap((file) => noteFile(file) ?? []);
  return new FileWatch({ files: opened, clock: { after }, onLost: (file) => void lost.push(file) });
}

/** Lets the watch look once, and waits until it has looked. */
async function lookOnce(): Promise<void> {
  const due = look;
  look = undefined;
  due?.();
  await expect.poll(() => look !== undefined || lost.length > 0).toBe(true);
}

it("reports nothing while both files grow at their paths", async () => {
  const watch = createWatch();
  watch.start();
  writeFileSync(files[0], "more");
  await lookOnce();
  expect(lost).toEqual([]);
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
] as const)("reports the file once if %s after the opening, even before the watch starts", async (_, takeAway) => {
  const watch = createWatch();
  takeAway();
  watch.start();
  await lookOnce();
  expect([lost, look]).toEqual([[files[0]], undefined]);
  watch.stop();
});
