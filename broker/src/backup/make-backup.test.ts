import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Hold, makeBackup } from "./make-backup.ts";
import { restoreBackup } from "./restore-backup.ts";

let root: string;
let folder: string;
let target: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "stele-make-backup-"));
  [folder, target] = [join(root, "data"), join(root, "backup")];
  mkdirSync(folder);
  for (const name of ["chain.sqlite", "store.sqlite", "keys.sqlite", "signer.key"]) write(name);
});
afterEach(() => rmSync(root, { recursive: true }));

function write(name: string): void {
  writeFileSync(join(folder, name), name);
}

const hold: Hold = async () => async () => {};

function backUp(holdData: Hold) {
  return makeBackup(target, { folder, holds: { data: holdData, keys: hold }, version: "test", now: () => 0 });
}

describe("a backup of a running broker", () => {
  it("has the key of a secret that the broker seals before the store is held", async () => {
    const manifest = await backUp(async () => {
      write("secrets.key");
      return async () => {};
    });
    const names = ["chain.sqlite", "keys.sqlite", "secrets.key", "signer.key", "store.sqlite"];
    expect(manifest.files.map(({ name }) => name).toSorted()).toEqual(names);
    expect(readdirSync(target).toSorted()).toEqual(["backup.json", ...names]);
  });
});

it.each([
  ["of a group that the broker named after its groupId", `signer-${encodeURIComponent("eu/orders:1~(a)'!*")}.key`],
  ["of an operator", ".spare key.key"],
])("has a key %s, and can be restored", async (_, name) => {
  write(name);
  await backUp(hold);
  const restored = join(root, "restored");
  await restoreBackup(target, restored, () => 0);
  expect(readFileSync(join(restored, name), "utf8")).toBe(name);
});

it("names the file that it cannot read", async () => {
  mkdirSync(join(folder, "old.key"));
  await expect(backUp(hold)).rejects.toThrow(`${join(folder, "old.key")}: EISDIR`);
});

it("names the manifest if it cannot be written", async () => {
  const backup = backUp(async () => {
    rmSync(join(target, "backup.json.unfinished"));
    mkdirSync(join(target, "backup.json.unfinished"));
    return async () => {};
  });
  await expect(backup).rejects.toThrow(`${join(target, "backup.json")}: EISDIR`);
});

describe("two backups to one folder at once", () => {
  it("refuses the one that claims the folder later, which removes no file of the other", async () => {
    const results = await Promise.allSettled([backUp(hold), backUp(hold)]); // Either may claim it first: threads create the files.
    const refused = results.filter(({ status }) => status === "rejected");
    expect(refused).toEqual([
      expect.objectContaining({
        reason: expect.objectContaining({ message: expect.stringContaining("name a new one for each backup") }),
      }),
    ]);
    expect(readdirSync(target).toSorted()).toEqual([
      "backup.json",
      "chain.sqlite",
      "keys.sqlite",
      "signer.key",
      "store.sqlite",
    ]);
  });
});

it("a backup is not restored into itself", async () => {
  await backUp(hold);
  const restored = restoreBackup(target, join(target, "data"), () => 0);
  await expect(restored).rejects.toThrow("is in the backup: restore to a folder elsewhere");
  expect(readdirSync(target)).not.toContain("data");
});

it.runIf(process.platform === "linux")("fails at once if the target's parent refuses new folders", async () => {
  target = "/proc/stele-backup";
  await expect(backUp(hold)).rejects.toThrow("ENOENT: no such file or directory, mkdir '/proc/stele-backup'");
});
