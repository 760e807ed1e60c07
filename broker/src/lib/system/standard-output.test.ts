import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { StandardOutput } from "./standard-output.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "output-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

it.runIf(process.platform === "linux")("flush writes lines that wait, once a full pipe accepts them", () => {
  const path = join(folder, "pipe");
  execFileSync("mkfifo", [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(path, constants.O_WRONLY);
  const read = (): string => {
    const buffer = Buffer.alloc(2 ** 20);
    return buffer.toString("utf8", 0, readSync(reader, buffer));
  };
  const output = new StandardOutput({ descriptor: writer });
  output.write("x".repeat(100_000)); // More than a pipe holds, which is 64 KiB.
  output.write("the last line\n");
  expect(read()).toMatch(/^x+$/);
  output.flush();
  expect(read()).toMatch(/^x+the last line\n$/);
  closeSync(reader);
  closeSync(writer);
});
