import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { type RunningServer, startServer } from "./start-server.ts";
import { runBackupCommand } from "./backup.ts";
import { formatManifest, manifestFile, toManifest } from "../backup/manifest.ts";
import { loadConfig } from "../config/load-config.ts";
import { silentLogger } from "../lib/logger.ts";
import { openDataFolder } from "../lib/system/data-folder.ts";
import { openNative } from "../store/sql/sqlite/native.ts";

const content = "whatever-was-published";

let root: string;
/** The data folder; no broker runs on it. */
let folder: string;
let target: string;
let lines: string[];

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "stele-backup-"));
  const live = join(root, "live");
  const server = await start(live);
  await fetch(`${server.url}/rest/open?topic=t`);
  for (let event = 0; event < 3; event += 1) await fetch(`${server.url}/rest/publish?topic=t&content=${content}`);
  cpSync(live, join(root, "killed"), { recursive: true });
  await server.stop();
  cpSync(live, join(root, "stopped"), { recursive: true });
});
afterAll(() => rmSync(root, { recursive: true }));
beforeEach(() => {
  const own = mkdtempSync(join(root, "test-"));
  [folder, target, lines] = [join(own, "data"), join(own, "backup"), []];
});

async function start(dataDir: string): Promise<RunningServer> {
  const env = { STELE_PORT: "0", STELE_DATA_DIR: dataDir };
  const outcome = loadConfig({ env, argv: [], readFile: () => "", version: "test" });
  if (outcome.status !== "loaded") throw new Error(JSON.stringify(outcome));
  return startServer(outcome.config, { logger: silentLogger, secrets: outcome.secrets });
}

function backUp() {
  return runBackupCommand("backup", [target, "--data-dir", folder], { env: {}, log: (line) => void lines.push(line) });
}

function leave(end: "killed" | "stopped"): void {
  cpSync(join(root, end), folder, { recursive: true });
}

/** Flips a bit at the first place of the content in a file; other transactions follow that place. */
function flip(name: string): void {
  const file = join(folder, name);
  const bytes = readFileSync(file);
  const place = bytes.indexOf(content);
  expect(place).toBeGreaterThan(0);
  bytes[place] = (bytes[place] ?? 0) ^ 1;
  writeFileSync(file, bytes);
}

describe("stele backup while no broker runs", () => {
  it.each(["killed", "stopped"] as const)("copies the folder of a broker that was %s", async (end) => {
    leave(end);
    expect(await backUp()).toMatchObject({ exitCode: 0, problem: "" });
    expect(lines).toEqual([]);
    expect(readdirSync(target)).toEqual(expect.arrayContaining(["backup.json", "chain.sqlite", "store.sqlite"]));
  });

  it("accepts settings before the name of the new folder", async () => {
    leave("stopped");
    const argv = ["--data-dir", folder, "-o", "json", target];
    expect(await runBackupCommand("backup", argv, { env: {}, log: () => {} })).toMatchObject({ exitCode: 0 });
    expect(existsSync(join(target, "backup.json"))).toBe(true);
  });

  it.each([
    ["--check-config", /"x"/],
    ["--version", /^stele /],
  ])("does not read a word as the value of %s", async (flag, says) => {
    for (const argv of [
      [target, flag, "--data-dir", "x"],
      [flag, target, "--data-dir", "x"],
    ]) {
      const outcome = await runBackupCommand("backup", argv, { env: {}, log: () => {} });
      expect(outcome).toMatchObject({ exitCode: 0, problem: "", output: expect.stringMatching(says) });
    }
  });

  it.each([
    ["no folder", ["--data-dir", "x"], /^Usage: stele backup DIR/],
    ["two folders", ["a", "--data-dir", "x", "b"], /^stele backup: there are more arguments/],
    ["a setting without a value", ["a", "--data-dir"], /^stele backup: --data-dir needs a value/],
  ])("exits with 2 for %s", async (_, argv, says) => {
    const outcome = await runBackupCommand("backup", argv, { env: {}, log: () => {} });
    expect(outcome).toMatchObject({ exitCode: 2, problem: expect.stringMatching(says) });
  });

  it("waits for a command that changes keys, and copies what it wrote", async () => {
    leave("stopped");
    const keys = await openNative(join(folder, "keys.sqlite"));
    keys.exec("pragma journal_mode = delete; create table t (n integer); begin exclusive; insert into t values (1)");
    const backup = backUp();
    await vi.waitFor(() => expect(existsSync(target)).toBe(true));
    keys.exec("commit");
    keys.close();
    expect(await backup).toMatchObject({ exitCode: 0 });
    const copy = await openNative(join(target, "keys.sqlite"));
    expect(copy.prepare("select n from t").all()).toEqual([{ n: 1 }]);
    copy.close();
  });

  it("copies keys that are damaged", async () => {
    leave("stopped");
    writeFileSync(join(folder, "keys.sqlite"), "damaged".repeat(1_000));
    expect(await backUp()).toMatchObject({ exitCode: 0 });
    expect(readFileSync(join(target, "keys.sqlite"), "utf8")).toBe("damaged".repeat(1_000));
  });

  it("names the files with keys, and with their passwords, that are outside the folder", async () => {
    leave("stopped");
    const [keystoreFile, passwordFile] = ["/etc/stele/signer.json", "/etc/stele/signer.password"];
    const groups = [
      { id: "1", endpoints: "embedded" },
      { id: "2", endpoints: ["http://127.0.0.1:1"], signer: { keystoreFile, passwordFile } },
    ];
    const env = { STELE_GROUPS: JSON.stringify(groups) };
    const { output } = await runBackupCommand("backup", [target, "--data-dir", folder], { env, log: () => {} });
    for (const file of [keystoreFile, passwordFile]) {
      expect(output).toContain(`not in the backup: ${file}; keep a copy of it\n`);
    }
  });

  it.each<[string, () => void, RegExp]>([
    ["is not there", () => {}, /data does not exist: name the broker's data folder by --data-dir/],
    ["is empty", () => mkdirSync(folder), /chain\.sqlite is missing or empty: .* has not run in that folder/],
    [
      "has no chain",
      () => {
        leave("stopped");
        rmSync(join(folder, "chain.sqlite"));
      },
      /chain\.sqlite is missing or empty: store\.sqlite beside it knows that chain.*Nothing was changed/,
    ],
    [
      "has no key",
      () => {
        leave("stopped");
        rmSync(join(folder, "signer.key"));
      },
      /signer\.key is missing/,
    ],
    [
      "has a damaged log of the chain",
      () => {
        leave("killed");
        flip("chain.sqlite-wal");
      },
      /chain\.sqlite-wal is damaged at byte \d+.*delete nothing/,
    ],
  ])("refuses a folder that %s, and leaves no backup", async (_, damage, says) => {
    damage();
    expect(await backUp()).toMatchObject({ exitCode: 1, output: "", problem: expect.stringMatching(says) });
    expect(existsSync(target)).toBe(false);
  });

  it("reports a damaged write-ahead log of the store, and copies the rest", async () => {
    leave("killed");
    flip("store.sqlite-wal");
    expect(await backUp()).toMatchObject({ exitCode: 0 });
    expect(lines).toEqual([expect.stringContaining("store's log damaged")]);
  });
});

describe("stele backup while the broker runs", () => {
  let server: RunningServer;
  beforeEach(async () => {
    server = await start(folder);
    await fetch(`${server.url}/rest/open?topic=t`);
  });
  afterEach(() => server.stop());

  it("keeps the broker's locks of SQLite: another process cannot open the store, and reading the chain does not delete its write-ahead log", async () => {
    expect(await backUp()).toMatchObject({ exitCode: 0, problem: "" });
    expect(() => readInAnotherProcess("store.sqlite")).toThrow(/database is locked/);
    const log = statSync(join(folder, "chain.sqlite-wal"));
    readInAnotherProcess("chain.sqlite");
    expect(statSync(join(folder, "chain.sqlite-wal"), { throwIfNoEntry: false })?.ino).toBe(log.ino);
  });

  it("copies the databases again", async () => {
    expect(await backUp()).toMatchObject({ exitCode: 0, problem: "" });
    await fetch(`${server.url}/rest/publish?topic=t&content=${content}`);
    target = `${target}-2`;
    expect(await backUp()).toMatchObject({ exitCode: 0, problem: "" });
    for (const name of ["chain.sqlite", "store.sqlite"]) {
      expect(readFileSync(join(target, name)).includes(content)).toBe(true);
    }
  });
});

/** Opens a database as SQLite's shell would, reads it, and closes it. */
function readInAnotherProcess(name: string): void {
  const script = `
    const database = new (require("@photostructure/sqlite").DatabaseSync)(${JSON.stringify(join(folder, name))});
    database.exec("select count(*) from sqlite_schema");
    database.close();
  `;
  execFileSync(process.execPath, ["-e", script], { cwd: import.meta.dirname, stdio: "pipe" });
}

it.each(["backup", "restore", "activate"] as const)("stele %s escapes a reason for a terminal", async (command) => {
  const missing = join(folder, "\u001b[2J\nmissing");
  const argv = [...(command === "activate" ? [] : [command === "restore" ? missing : target]), "--data-dir", missing];
  const outcome = await runBackupCommand(command, argv, { env: {}, log: () => {} });
  expect(outcome).toMatchObject({
    exitCode: 1,
    problem: expect.stringMatching(/^.*\\u\{1b\}\[2J\\u\{a\}missing .*\n$/),
  });
});

it("stele restore escapes the names of the files of a backup in the output for a terminal, but not in JSON", async () => {
  const files = [{ name: "\u001b[2J\n.key", bytes: 0, sha256: createHash("sha256").digest("hex") }];
  mkdirSync(target, { recursive: true });
  writeFileSync(join(target, "\u001b[2J\n.key"), "");
  writeFileSync(
    join(target, manifestFile),
    formatManifest(toManifest({ version: "1", madeAt: "2026-11-23T01:02:03Z", files })),
  );
  const restore = (...argv: readonly string[]) =>
    runBackupCommand("restore", [target, ...argv], { env: {}, log: () => {} });
  const { output } = await restore("--data-dir", folder);
  expect(output).toMatch(/^backup of \S+: \\u\{1b\}\[2J\\u\{a\}\.key, 0 bytes restored to /);
  const { output: json } = await restore("--data-dir", `${folder}-2`, "-o", "json");
  expect(JSON.parse(json)).toMatchObject({ files });
});

it("stele activate reports a folder that does not exist", async () => {
  const outcome = await runBackupCommand("activate", ["--data-dir", folder], { env: {}, log: () => {} });
  expect(outcome).toMatchObject({ exitCode: 1, problem: expect.stringContaining(`${folder} does not exist`) });
});

it("stele restore says to delete the folder of an interrupted restore, but not that of a running one", async () => {
  leave("stopped");
  expect(await backUp()).toMatchObject({ exitCode: 0 });
  const to = `${folder}-restored`;
  mkdirSync(to);
  writeFileSync(join(to, "restore.unfinished"), "");
  const restore = () => runBackupCommand("restore", [target, "--data-dir", to], { env: {}, log: () => {} });
  const running = openDataFolder(to);
  expect(await restore()).toMatchObject({ exitCode: 1, problem: expect.stringContaining("another restore to") });
  running.release();
  const says = "delete the folder, or what is in it if it is a mount point, then restore again";
  expect(await restore()).toMatchObject({ exitCode: 1, problem: expect.stringContaining(says) });
});
