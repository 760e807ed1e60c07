import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { changeUserFile, userFile } from "./user-file.ts";

let folder: string;
let file: string;
let lock: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "stele-user-file-"));
  file = join(folder, "contexts.json");
  lock = `${file}.lock`;
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true });
});

it("waits for a process that changes the file, and then changes the text that the process wrote", async () => {
  writeFileSync(lock, "theirs");
  const changing = changeUserFile(file, (text) => `${text} and ours`);
  renameSync(lock, file);
  await vi.runAllTimersAsync();
  await changing;
  expect(readFileSync(file, "utf8")).toBe("theirs and ours");
  expect(readdirSync(folder)).toEqual(["contexts.json"]);
});

it("keeps the file and the lock if another lock stays, and names the lock in the error", async () => {
  writeFileSync(file, "old");
  writeFileSync(lock, "");
  const changing = expect(changeUserFile(file, () => "new")).rejects.toThrow(`${lock} exists`);
  await vi.runAllTimersAsync();
  await changing;
  expect(readFileSync(file, "utf8")).toBe("old");
  expect(existsSync(lock)).toBe(true);
});

it("keeps the file and unlocks it if the change fails", async () => {
  writeFileSync(file, "old");
  const failing = changeUserFile(file, () => {
    throw new Error("no such context");
  });
  await expect(failing).rejects.toThrow("no such context");
  expect(readdirSync(folder)).toEqual(["contexts.json"]);
  expect(readFileSync(file, "utf8")).toBe("old");
});

const homed = (home: string): string => join(home, ".config/stele/contexts.json");

it.each([
  [{ XDG_CONFIG_HOME: "/etc/mine", HOME: "/home/me" }, "/etc/mine/stele/contexts.json"],
  [{ XDG_CONFIG_HOME: "mine", HOME: "/home/me" }, homed("/home/me")],
  [{ HOME: "/home/me" }, homed("/home/me")],
  [{ HOME: "" }, homed(userInfo().homedir)],
  [{ HOME: "me" }, homed(userInfo().homedir)],
  [{}, homed(userInfo().homedir)],
])("the environment %j gives the file %s, never one of the current folder", (env, path) => {
  expect(userFile("contexts.json", env)).toBe(path);
});

it.runIf(process.getuid?.() === 0)("a user whom the system does not know has files in the root folder", () => {
  process.seteuid?.(2 ** 31 - 2);
  try {
    expect(userFile("contexts.json", { HOME: "" })).toBe("/.config/stele/contexts.json");
  } finally {
    process.seteuid?.(0);
  }
});
