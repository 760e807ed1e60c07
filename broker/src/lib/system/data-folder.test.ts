import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DataFolderError, openDataFolder } from "./data-folder.ts";
import { readOrCreateSecret } from "./secret-file.ts";

const create = (): Uint8Array => new Uint8Array(32).fill(7);
let parent: string;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "stele-folder-"));
});
afterEach(() => rmSync(parent, { recursive: true }));

describe("openDataFolder", () => {
  it("makes the folder for its owner alone", () => {
    const folder = openDataFolder(join(parent, "a", "data"));
    expect(statSync(folder.path(".")).mode & 0o777).toBe(0o700);
    folder.release();
  });

  it("refuses a folder that is in use, and takes it once it is free", () => {
    const first = openDataFolder(parent);
    expect(() => openDataFolder(parent)).toThrow(DataFolderError);
    expect(() => openDataFolder(parent)).toThrow(/in use by another broker/);
    first.release();
    openDataFolder(parent).release();
  });

  it("refuses a folder that cannot be made", () => {
    symlinkSync(join(parent, "nowhere"), join(parent, "dangling"));
    for (const path of [join(parent, "dangling", "data"), "/proc/stele"]) {
      expect(() => openDataFolder(path)).toThrow(/cannot be read and written/);
    }
  });

  it("refuses a path that is a file", () => {
    const file = join(parent, "file");
    writeFileSync(file, "");
    expect(() => openDataFolder(file)).toThrow(/cannot be read and written/);
  });
});

describe("readOrCreateSecret", () => {
  it("makes the file once, for its owner alone", () => {
    const file = join(parent, "key");
    const made = readOrCreateSecret(file, { bytes: 32, create });
    const read = readOrCreateSecret(file, { bytes: 32, create: () => new Uint8Array(32) });
    expect(read).toEqual(made);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it("makes it after a start that was killed halfway", () => {
    const file = join(parent, "key");
    writeFileSync(`${file}.draft`, "0707");
    expect(readOrCreateSecret(file, { bytes: 32, create })).toEqual(create());
  });

  it("refuses a file of another length", () => {
    const file = join(parent, "key");
    writeFileSync(file, "0102\n");
    expect(() => readOrCreateSecret(file, { bytes: 32, create })).toThrow(/32 bytes/);
  });
});
