import { cpSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { NewFiles } from "./new-files.ts";

let root: string;
let folder: string;
let newFiles: NewFiles;
/** A database that was in the folder before, with a new log. */
let database: DatabaseSyncInstance;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "stele-new-files-"));
  folder = join(root, "data");
  cpSync(createDatabase(), join(folder, "store.sqlite"));
  utimesSync(join(folder, "store.sqlite"), 0, 0); // A change right after this has another time, however coarse the clock is.
  newFiles = new NewFiles(folder);
  for (const name of ["signer.key", "chain.sqlite", "chain.sqlite-wal"]) writeFileSync(join(folder, name), "new");
  database = new DatabaseSync(join(folder, "store.sqlite"));
});
afterEach(() => {
  database.close();
  rmSync(root, { recursive: true });
});

function createDatabase(): string {
  const file = join(root, "made.sqlite");
  const made = new DatabaseSync(file);
  made.exec("pragma journal_mode = wal; create table t (a)");
  made.close();
  return file;
}

test("removes new files, and the new log of a database that was not changed", () => {
  database.exec("insert into t values (1)");
  newFiles.remove();
  expect(readdirSync(folder)).toEqual(["store.sqlite"]);
});

test("removes nothing once SQLite has copied the new log into a known database", () => {
  database.exec("insert into t values (1); pragma wal_checkpoint(passive); insert into t values (2)");
  newFiles.remove();
  expect(readdirSync(folder)).toEqual(expect.arrayContaining(["chain.sqlite", "chain.sqlite-wal", "signer.key"]));
  cpSync(folder, join(root, "copy"), { recursive: true });
  const copy = new DatabaseSync(join(root, "copy", "store.sqlite"));
  expect(copy.prepare("select a from t").all()).toEqual([{ a: 1 }, { a: 2 }]);
});
