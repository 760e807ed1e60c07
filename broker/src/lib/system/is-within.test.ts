import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { isWithin } from "./is-within.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "stele-within-"))));
afterEach(() => rmSync(folder, { recursive: true }));

it.each([
  ["the folder itself", "data", true],
  ["a new folder in it", "data/new/deep", true],
  ["a folder whose name only begins like it", "data-2", false],
  ["the folder above it", ".", false],
  ["a path that leaves it again", "data/../other", false],
  ["a new folder behind a link to it", "link/new", true],
])("%s: whether the path %s is inside the folder: %s", async (_, path, expected) => {
  mkdirSync(join(folder, "data"));
  symlinkSync(join(folder, "data"), join(folder, "link"));
  expect(await isWithin(join(folder, path), join(folder, "data"))).toBe(expected);
});

it("every path is in the root folder", async () => {
  expect(await isWithin(folder, "/")).toBe(true);
});
