import { chmodSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { platform, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { makeFolder, makeFolderSync } from "./make-folder.ts";

let root: string;
beforeEach(() => void (root = mkdtempSync(join(tmpdir(), "stele-make-folder-"))));
afterEach(() => rmSync(root, { recursive: true }));

it("creates a folder and its parents with mode 0700, and keeps an existing folder", async () => {
  const folder = join(root, "a", "b", "c");
  expect(await makeFolder(folder)).toBe(true);
  expect(await makeFolder(folder)).toBe(false);
  if (platform() !== "win32") expect(statSync(join(root, "a")).mode & 0o777).toBe(0o700);
});

it("makeFolderSync creates a folder and its parents, and keeps an existing folder", () => {
  const folder = join(root, "a", "b", "c");
  makeFolderSync(folder);
  makeFolderSync(folder);
  expect(statSync(folder).isDirectory()).toBe(true);
});

it.runIf(process.getuid?.() !== 0)("creates a folder in a parent that this user may write but not read", async () => {
  const parent = join(root, "parent");
  await makeFolder(parent);
  chmodSync(parent, 0o300);
  expect(await makeFolder(join(parent, "a"))).toBe(true);
  makeFolderSync(join(parent, "b"));
  chmodSync(parent, 0o700);
});

it("throws if a parent is a file, or a link to nothing", async () => {
  writeFileSync(join(root, "file"), "");
  symlinkSync(join(root, "nothing", "here"), join(root, "link"));
  await expect(makeFolder(join(root, "file", "a", "b"))).rejects.toMatchObject({ code: "ENOTDIR" });
  await expect(makeFolder(join(root, "link", "a"))).rejects.toMatchObject({ code: "ENOENT" });
});

it.runIf(platform() === "linux")("throws below a folder that refuses new ones", async () => {
  await expect(makeFolder("/proc/stele/a")).rejects.toMatchObject({ code: "ENOENT" });
  expect(() => makeFolderSync("/proc/stele/a")).toThrow("ENOENT");
});
