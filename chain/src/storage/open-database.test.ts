import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as afterFinalizers } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { DatabaseSync, type StatementSyncInstance } from "@photostructure/sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { NativeCalls } from "../native-calls.ts";
import { openDatabase, type OwnedDatabase } from "./open-database.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "stele-open-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Copies a database of one row in the middle of a transaction that has written to the file, as a power loss would leave it. */
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

it("openDatabase opens a file whose creation a power loss cut short, and rolls the transaction back", async () => {
  const file = join(folder, "chain.sqlite");
  cutShort(file);
  expect(statSync(`${file}-journal`).size).toBeGreaterThan(0);
  const { database, close } = await openDatabase(file, new NativeCalls());
  try {
    expect(database.prepare("SELECT hex(content) AS content FROM rows").all()).toMatchObject([{ content: "01" }]);
  } finally {
    close();
  }
});

it.skipIf(process.platform === "win32")(
  "openDatabase creates a file and a log that only their owner may read",
  async () => {
    const file = join(folder, "chain.sqlite");
    const { database, close } = await openDatabase(file, new NativeCalls());
    try {
      database.exec("CREATE TABLE rows (content BLOB)");
      const modes = [file, `${file}-wal`, `${file}-shm`].map((path) => statSync(path).mode & 0o777);
      expect(modes).toEqual([0o600, 0o600, 0o600]);
    } finally {
      close();
    }
  },
);

/** Counts the native calls. */
class CountedCalls extends NativeCalls {
  count = 0;

  override run<Result>(call: () => Result): Result {
    this.count += 1;
    return super.run(call);
  }
}

it("every call of the database, its guard and its lock is a native call", async () => {
  const file = join(folder, "chain.sqlite");
  await killed(file);
  const calls = new CountedCalls();
  const { database, close } = await openDatabase(file, calls);
  expect(calls.count).toBeGreaterThan(3);
  const count = (use: () => unknown): number => {
    calls.count = 0;
    use();
    return calls.count;
  };
  expect(count(() => database.prepare("SELECT 1").all())).toBe(2);
  expect(count(() => close())).toBe(3);
});

const collectGarbage = createGarbageCollection();

function createGarbageCollection(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void; // The flag defines `gc` in new contexts.
}

/** Makes a database whose only table is still in the log, for example after a kill. */
async function killed(file: string): Promise<void> {
  const source = join(folder, "live.sqlite");
  const { database, close } = await openDatabase(source, new NativeCalls());
  database.exec("CREATE TABLE rows (content BLOB)");
  copyFileSync(source, file);
  copyFileSync(`${source}-wal`, `${file}-wal`);
  close();
}

describe("a file that the process opened but refuses", () => {
  const ends: readonly (readonly [string, (owned: OwnedDatabase) => void])[] = [
    ["closed with keepsLog", ({ close }) => close({ keepsLog: true })],
    ["never closed", () => undefined],
  ];

  it.each(ends)(
    "a refused file keeps its log if its database is %s, even if a statement is garbage-collected after the database",
    async (_, end) => {
      const file = join(folder, "chain.sqlite");
      await killed(file);
      const before = [file, `${file}-wal`].map((path) => readFileSync(path));
      const statements = new Set<StatementSyncInstance>();
      const refuse = async (): Promise<void> => {
        const owned = await openDatabase(file, new NativeCalls());
        statements.add(owned.database.prepare("SELECT * FROM rows"));
        end(owned);
      };
      await refuse();
      for (let round = 0; round < 2; round += 1) {
        collectGarbage();
        await afterFinalizers();
        statements.clear();
      }
      expect([file, `${file}-wal`].map((path) => readFileSync(path))).toEqual(before);
    },
  );
});
