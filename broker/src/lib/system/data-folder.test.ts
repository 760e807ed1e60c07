import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DataFolderError, openDataFolder } from "./data-folder.ts";
import { type Logger, silentLogger } from "../logger.ts";
import { checkSecretFile, readOrCreateSecret, readSecretText } from "./secret-file.ts";

const create = (): Uint8Array => new Uint8Array(32).fill(7);
let parent: string;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "stele-folder-"));
});
afterEach(() => rmSync(parent, { recursive: true }));

function recordWarnings() {
  const warnings: (readonly [string, object | undefined])[] = [];
  const logger: Logger = { ...silentLogger, warn: (message, fields) => void warnings.push([message, fields]) };
  return { warnings, logger };
}

describe("openDataFolder", () => {
  it("creates the folder for its owner alone", () => {
    const folder = openDataFolder(join(parent, "a", "data"));
    expect(statSync(folder.path(".")).mode & 0o777).toBe(0o700);
    folder.release();
  });

  it("refuses a folder that is in use, and accepts it once it is free", () => {
    const first = openDataFolder(parent);
    expect(() => openDataFolder(parent)).toThrow(DataFolderError);
    expect(() => openDataFolder(parent)).toThrow(/in use by another broker/);
    first.release();
    openDataFolder(parent).release();
  });

  it("refuses a folder that cannot be created", () => {
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

it.runIf(process.getuid?.() === 0)(
  "as root, gives new lock files and a new head file to the folder's owner, and leaves earlier and other files to theirs",
  () => {
    writeFileSync(join(parent, "earlier-lock"), "");
    chownSync(parent, 65_534, 65_534);
    const folder = openDataFolder(parent);
    for (const name of ["chain.sqlite", "chain.sqlite-head", "chain.sqlite-lock"]) writeFileSync(folder.path(name), "");
    folder.release();
    const owners = readdirSync(parent).map((name) => [name, statSync(join(parent, name)).uid]);
    expect(Object.fromEntries(owners)).toEqual({
      "earlier-lock": 0,
      "chain.sqlite": 0,
      "chain.sqlite-head": 65_534,
      "chain.sqlite-lock": 65_534,
      lock: 65_534,
    });
  },
);

describe("a data folder with links", () => {
  it.each(["chain.sqlite", "chain.sqlite-wal", "chain.sqlite-head", "store.sqlite", "keys.sqlite"])(
    "is refused if %s is a link, and stays unchanged",
    (name) => {
      const [data, target] = [join(parent, "data"), join(parent, "target")];
      mkdirSync(data);
      writeFileSync(target, "");
      symlinkSync(target, join(data, name));
      expect(() => openDataFolder(data)).toThrow(DataFolderError);
      expect(() => openDataFolder(data)).toThrow(
        `${join(data, name)} is a symbolic link: a broker with another data folder could write the same file`,
      );
      expect(readdirSync(data)).toEqual([name]);
    },
  );

  it("is accepted if a key file is a link; a folder that is itself a link is locked under both names", () => {
    const [data, link] = [join(parent, "data"), join(parent, "link")];
    mkdirSync(data);
    writeFileSync(join(parent, "key"), "");
    symlinkSync(join(parent, "key"), join(data, "signer.key"));
    symlinkSync(data, link);
    const folder = openDataFolder(link);
    expect(() => openDataFolder(data)).toThrow(/in use by another broker/);
    folder.release();
  });
});

describe.skipIf(process.platform === "win32")("access of other users", () => {
  it.each(["755", "750", "701"])("warns about a folder with the permissions %s", (mode) => {
    const { warnings, logger } = recordWarnings();
    chmodSync(parent, mode);
    openDataFolder(parent, logger).release();
    const fields = { folder: parent, mode: `0${mode}`, remedy: `chmod 700 ${parent}` };
    expect(warnings).toEqual([["data folder is open to other users", fields]]);
  });

  it("does not warn about a folder that only its owner can open", () => {
    const { warnings, logger } = recordWarnings();
    openDataFolder(parent, logger).release();
    expect(warnings).toEqual([]);
  });

  it.each(["644", "640", "604", "620", "666"])(
    "warns about a secret with the permissions %s, however it is read",
    (mode) => {
      const { warnings, logger } = recordWarnings();
      const file = join(parent, "key");
      readOrCreateSecret(file, { bytes: 32, create, logger });
      expect(warnings).toEqual([]);
      chmodSync(file, mode);
      readOrCreateSecret(file, { bytes: 32, create, logger });
      readSecretText(file, logger);
      checkSecretFile(file, logger);
      const fields = { file, mode: `0${mode}`, remedy: `chmod 600 ${file}` };
      expect(warnings).toEqual([1, 2, 3].map(() => ["secret file is open to other users", fields]));
    },
  );
});

describe("readOrCreateSecret", () => {
  it("creates the file once, for its owner alone", () => {
    const file = join(parent, "key");
    const made = readOrCreateSecret(file, { bytes: 32, logger: silentLogger, create });
    const read = readOrCreateSecret(file, { bytes: 32, logger: silentLogger, create: () => new Uint8Array(32) });
    expect(read).toEqual(made);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it("creates the file after an earlier start was killed halfway", () => {
    const file = join(parent, "key");
    writeFileSync(`${file}.draft`, "0707");
    expect(readOrCreateSecret(file, { bytes: 32, logger: silentLogger, create })).toEqual(create());
  });

  it("refuses a file of another length", () => {
    const file = join(parent, "key");
    writeFileSync(file, "0102\n");
    expect(() => readOrCreateSecret(file, { bytes: 32, logger: silentLogger, create })).toThrow(/32 bytes/);
  });
});
