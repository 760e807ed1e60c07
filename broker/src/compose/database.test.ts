import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { databaseAddress, findDatabaseProblems } from "./database.ts";
import { type Logger, silentLogger } from "../lib/logger.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "stele-database-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

function fileOf(text: string, mode = 0o600): string {
  const file = join(folder, "password");
  writeFileSync(file, text);
  chmodSync(file, mode);
  return file;
}

test.each(["postgres://stele@db/stele", "postgres://stele@db/stele?sslmode=require", "postgres:///stele?host=/run"])(
  "adds the password of the file to %s, whatever characters it has",
  (databaseUrl) => {
    const password = "p@ss:/?#&+ %41=";
    const databasePasswordFile = fileOf(`${password}\n`);
    const address = new URL(databaseAddress({ databaseUrl, databasePasswordFile }, silentLogger));
    expect(address.searchParams.get("password")).toBe(password);
    expect(address.href.startsWith(databaseUrl)).toBe(true);
  },
);

test("leaves an address with its own password unchanged", () => {
  const databaseUrl = "postgres://stele:secret@db/stele";
  expect(databaseAddress({ databaseUrl, databasePasswordFile: "" }, silentLogger)).toBe(databaseUrl);
});

test("warns of a password file that others can read", () => {
  const warnings: string[] = [];
  const logger: Logger = { ...silentLogger, warn: (message) => warnings.push(message) };
  const databasePasswordFile = fileOf("secret", 0o644);
  databaseAddress({ databaseUrl: "postgres://stele@db/stele", databasePasswordFile }, logger);
  expect(warnings).toEqual(["secret file is open to other users"]);
});

test("warns of an sslkey file that others can read", () => {
  const warnings: string[] = [];
  const logger: Logger = { ...silentLogger, warn: (message) => warnings.push(message) };
  const databaseUrl = `postgres://stele@db/stele?sslmode=verify-full&sslkey=${fileOf("key", 0o640)}`;
  databaseAddress({ databaseUrl, databasePasswordFile: "" }, logger);
  expect(warnings).toEqual(["secret file is open to other users"]);
});

test.each(["sslkey", "sslcert", "sslrootcert"])(
  "before it connects, refuses an address whose %s names a missing file",
  (name) => {
    const file = join(folder, "none");
    const databaseUrl = `postgres://stele:hunter2@db/stele?sslmode=verify-full&${name}=${file}`;
    expect(findDatabaseProblems({ databaseUrl, databasePasswordFile: "" })).toEqual([
      expect.stringContaining(`STELE_DATABASE_URL: ${file} does not exist`),
    ]);
  },
);

test("reports an unknown sslmode, and shows neither user nor password", () => {
  const databaseUrl = "postgres://stele:hunter2@db/stele?sslmode=weird";
  expect(findDatabaseProblems({ databaseUrl, databasePasswordFile: "" })).toEqual([
    "STELE_DATABASE_URL: PostgreSQL database stele at db has an sslmode in its address that is not one of disable, prefer, require, verify-ca, verify-full",
  ]);
});

test("reports a password file that is missing or empty", () => {
  const databaseUrl = "postgres://stele@db/stele";
  const problems = (databasePasswordFile: string) => findDatabaseProblems({ databaseUrl, databasePasswordFile });
  expect(problems(join(folder, "none"))).toEqual([
    `STELE_DATABASE_PASSWORD_FILE: ${join(folder, "none")} does not exist; it must contain a secret.`,
  ]);
  expect(problems(fileOf("\n"))).toEqual([
    `STELE_DATABASE_PASSWORD_FILE: ${join(folder, "password")} is empty; it must contain the database's password.`,
  ]);
  expect(problems(fileOf("secret"))).toEqual([]);
});
