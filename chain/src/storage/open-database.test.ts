import { copyFileSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openDatabase } from "./open-database.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "stele-open-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Copies a database of one row in the middle of a transaction that has written to the file: as a power loss leaves it. */
function cutShort(file: string): void {
  const source = join(folder, "source.sqlite");
  const database = new DatabaseSync(source);
  database.exec("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; PRAGMA cache_size = 1");
  database.exec("CREATE TABLE rows (content BLOB); INSERT INTO rows VALUES (x'01')");
  database.exec("BEGIN");
  for (let row = 0; row < 100; row += 1) database.exec("INSERT INTO rows VALUES (randomblob(4000))");
  copyFileSync(source, file);
  copyFileSync(`${source}-journal`, `${file}-journal`);
  database.exec("ROLLBACK");
  database.close();
}

it("opens a file whose creation a power loss cut short, and rolls the transaction back", async () => {
  const file = join(folder, "chain.sqlite");
  cutShort(file);
  expect(statSync(`${file}-journal`).size).toBeGreaterThan(0);
  const { database, close } = await openDatabase(file);
  try {
    expect(database.prepare("SELECT hex(content) AS content FROM rows").all()).toMatchObject([{ content: "01" }]);
  } finally {
    close();
  }
});
