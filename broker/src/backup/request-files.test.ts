import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { RequestFiles } from "./request-files.ts";

const request = { id: "3b241101-e2bb-4255-8caf-4136c566a962", target: "/backup" };

it("replaces what an interrupted command left, and writes through no link", () => {
  const folder = mkdtempSync(join(tmpdir(), "stele-request-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const unfinished = join(folder, "backup.request.unfinished");
  writeFileSync(unfinished, "{");
  const files = new RequestFiles(folder);
  files.ask(request);
  expect(files.take()).toEqual(request);
  const target = join(folder, "target");
  symlinkSync(target, unfinished);
  files.ask(request);
  expect(existsSync(target)).toBe(false);
  expect(files.take()).toEqual(request);
});

it("names the data folder if the request cannot be written, since the command also names the folder of the backup", () => {
  const folder = mkdtempSync(join(tmpdir(), "stele-request-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "backup.request.unfinished"));
  expect(() => new RequestFiles(folder).ask(request)).toThrow(
    `the request to the broker cannot be written to ${folder}: `,
  );
});
