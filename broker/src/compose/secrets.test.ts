import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { findSecretProblems, loadSecretKeys } from "./secrets.ts";
import { type LogFields, silentLogger } from "../lib/logger.ts";
import { openDataFolder } from "../lib/system/data-folder.ts";

const key = "ab".repeat(32);
let path: string;
let warnings: LogFields[];

beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), "stele-secrets-"));
  onTestFinished(() => rmSync(path, { recursive: true }));
  warnings = [];
});

function load({ secretKeyFile = "", databaseUrl = "" } = {}) {
  const folder = openDataFolder(path);
  const logger = { ...silentLogger, warn: (_: string, fields?: LogFields) => void warnings.push(fields ?? {}) };
  try {
    return loadSecretKeys({ secretKeyFile, databaseUrl }, { folder, logger });
  } finally {
    folder.release();
  }
}

it("creates a key in the data folder with the first secret, for its owner only, and reads it again later", () => {
  const file = join(path, "secrets.key");
  const keys = load();
  expect(keys.find("0".repeat(16))).toBeUndefined();
  expect(existsSync(file)).toBe(false);
  const made = keys.newest();
  expect(readFileSync(file, "utf8")).toBe(`${Buffer.from(made.bytes).toString("hex")}\n`);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(keys.newest()).toBe(made);
  expect(load().newest().id).toBe(made.id);
  expect(load().find(made.id)?.id).toBe(made.id);
});

it("reads the keys from secretKeyFile, for one node and for several, and refuses a missing file", () => {
  const secretKeyFile = join(path, "shared");
  const name = () => load({ secretKeyFile, databaseUrl: "postgres://h/d" });
  expect(name).toThrow(`${secretKeyFile} does not exist`);
  expect(findSecretProblems({ secretKeyFile, databaseUrl: "" })).toEqual([
    `STELE_SECRET_KEY_FILE: ${secretKeyFile} does not exist; it must contain a secret.`,
  ]);
  writeFileSync(secretKeyFile, `${key}\n`, { mode: 0o600 });
  expect(Buffer.from(name().newest().bytes).toString("hex")).toBe(key);
  expect(load({ secretKeyFile }).newest()).toEqual(name().newest());
  expect(findSecretProblems({ secretKeyFile, databaseUrl: "" })).toEqual([]);
  expect(findSecretProblems({ secretKeyFile: "", databaseUrl: "" })).toEqual([]);
  expect([existsSync(join(path, "secrets.key")), warnings]).toEqual([false, []]);
});

it("warns of a file that others can read", () => {
  const secretKeyFile = join(path, "shared");
  writeFileSync(secretKeyFile, key, { mode: 0o644 });
  load({ secretKeyFile });
  expect(warnings).toMatchObject([{ file: secretKeyFile, mode: "0644" }]);
});

it("refuses secrets without secretKeyFile if nodes share a database", () => {
  const keys = load({ databaseUrl: "postgres://h/d" });
  expect(() => keys.newest()).toThrow(/named by STELE_SECRET_KEY_FILE/);
  expect(existsSync(join(path, "secrets.key"))).toBe(false);
});

it("throws the error 200207, which a retry may fix, if the data folder cannot be written", () => {
  const keys = load();
  rmSync(path, { recursive: true });
  writeFileSync(path, "");
  expect(() => keys.newest()).toThrow(expect.objectContaining({ code: 200207 }));
});
