import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sql } from "kysely";
import { beforeEach, describe, expect, it } from "vitest";
import { endOfBlock, positionZero, toPosition } from "../../domain/position.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { type LogFields, silentLogger } from "../../lib/logger.ts";
import {
  alpha,
  batchOf,
  blockOf,
  group,
  history,
  subscriptionOf,
  webhookTo,
  topicOf,
} from "../../ports/store-examples.contract.ts";
import { testGroupRecords } from "../../ports/group-records.contract.ts";
import { testJournal } from "../../ports/journal.contract.ts";
import { testPublishKeys } from "../../ports/publish-keys.contract.ts";
import { testSecretRows } from "../../ports/secret-rows.contract.ts";
import { testStore } from "../../ports/store.contract.ts";
import { testSessionStore } from "../../ports/session-store.contract.ts";
import { temporaryFile } from "../temporary-file.contract.ts";
import { migratedFile } from "./migrations/migrated-file.contract.ts";
import { schemaVersion } from "./migrations/migrations.ts";
import type { SqlDatabase } from "./schema.ts";
import { createSqlStore, SqlStore } from "./sql-store.ts";
import { testSqlDamage } from "./sql-damage.contract.ts";
import { testSqlColumns } from "./sql-columns.contract.ts";
import { testSqlSessionDamage } from "./sessions/sql-session-damage.contract.ts";
import { testSqlStatements } from "./sql-statements.contract.ts";
import { testStaleRows } from "./sql-stale-rows.contract.ts";
import { createSqliteBackend } from "./sqlite/sqlite-backend.ts";

testGroupRecords("SQLite", async () => createSqlStore({ file: await migratedFile() }));
testJournal("SQLite", async () => createSqlStore({ file: await migratedFile() }));
testPublishKeys("SQLite", async () => createSqlStore({ file: await migratedFile() }));
testSecretRows("SQLite", async () => createSqlStore({ file: await migratedFile() }));
testSqlDamage("SQLite", async () => createSqliteBackend(await migratedFile()));
testSqlColumns("SQLite", async () => createSqliteBackend(await migratedFile()));
testSqlSessionDamage("SQLite", async () => createSqliteBackend(await migratedFile()));
testStaleRows("SQLite", async () => createSqliteBackend(await migratedFile()));
testSqlStatements("SQLite", async () => createSqliteBackend(await migratedFile()));
testStore("SQLite", async () => createSqlStore({ file: await migratedFile() }));
testSessionStore("SQLite", async () => createSqlStore({ file: await migratedFile() }));

describe("the SQLite store", () => {
  let file: string;
  beforeEach(() => {
    file = temporaryFile();
  });

  it("logs the former schema version if and only if it migrated the schema", async () => {
    const lines: LogFields[] = [];
    const logger = { ...silentLogger, info: (_: string, fields?: LogFields) => void lines.push(fields ?? {}) };
    for (let start = 0; start < 2; start += 1) {
      const store = createSqlStore({ file, logger });
      await store.start();
      await store.stop();
    }
    expect(lines).toMatchObject([{ migratedFrom: 0 }, { schema: schemaVersion }]);
    expect(lines[1]).not.toHaveProperty("migratedFrom");
  });

  it("keeps everything across a restart, in one file", async () => {
    const store = createSqlStore({ file });
    await store.start();
    await store.applyBlocks(group, history);
    await store.insertSubscription(subscriptionOf(1), 0);
    await store.saveProgress([
      {
        id: subscriptionOf(1).id,
        epoch: 0,
        cursor: endOfBlock(6),
        notifiedCount: 6,
        notifiedAt: 1_800_000_000_000,
        failedAttempts: 0,
        failedMs: 0,
        failingSince: 0,
        retryAt: 0,
      },
    ]);
    const snapshot = async () => ({
      head: await store.findHead(group),
      topics: await store.listTopics(group, { offset: 0, limit: 9 }),
      subscriptions: await store.listSubscriptions(),
      batch: await store.findBatch(group, { topic: alpha, sequence: 5 }),
      pending: await store.countEventsAfter(group, alpha, positionZero),
    });
    const before = await snapshot();
    await store.stop();
    expect(readdirSync(join(file, ".."))).toEqual(["store.db"]);
    await store.start();
    expect(await snapshot()).toEqual(before);
    await store.applyBlocks(group, [blockOf(7, { batches: [batchOf(alpha, { block: 7, sequence: 9, count: 1 })] })]);
    expect(await store.findTopic(group, alpha)).toMatchObject({ sequence: 9, blockNumber: 7 });
    await store.stop();
  });

  it("starts empty after its file was deleted, and accepts the blocks again", async () => {
    const store = createSqlStore({ file });
    await store.start();
    await store.applyBlocks(group, history);
    await store.stop();
    rmSync(file);
    await store.start();
    expect(await store.findHead(group)).toBeUndefined();
    await store.applyBlocks(group, history);
    expect(await store.countEventsAfter(group, alpha, positionZero)).toBe(6);
    await store.stop();
  });

  it.each([300, 3_000])("reuses the space of dropped events of %i bytes for the next batches", async (bytes) => {
    const store = createSqlStore({ file });
    await store.start();
    await store.applyBlocks(group, history.slice(0, 1), { isFinal: true });
    const perRound = 1_000;
    const sizes: number[] = [];
    for (let round = 0; round < 4; round += 1) {
      const batches = Array.from({ length: perRound }, (_, index) => {
        const number = 2 + round * perRound + index;
        return batchOf(alpha, { block: number, sequence: number - 1, count: 1, events: new Uint8Array(bytes).fill(1) });
      });
      const blocks = batches.map((batch) => blockOf(batch.blockNumber, { batches: [batch] }));
      await store.applyBlocks(group, blocks, { isFinal: true });
      expect(await store.dropEvents(group, batches)).toHaveLength(perRound);
      await store.stop();
      sizes.push(statSync(file).size);
      await store.start();
    }
    await store.stop();
    // The remaining rows take 214 bytes each; after an update in place they would take 557 and 4,148.
    expect((Math.max(...sizes) - Math.min(...sizes)) / 3 / perRound).toBeLessThan(250);
  });

  it("refuses a second opener until the first has stopped", async () => {
    const [first, second] = [createSqlStore({ file }), createSqlStore({ file })];
    await first.start();
    await expect(second.start()).rejects.toMatchObject({
      fault: "locked",
      message: expect.stringContaining(`${file} is in use by another process`),
    });
    await first.applyBlocks(group, history);
    await first.stop();
    await second.start();
    expect(await second.findHead(group)).toMatchObject({ blockNumber: 6 });
    await second.stop();
  });

  it("keeps another process from reading its file", async () => {
    const store = createSqlStore({ file });
    await store.start();
    const script = `const { DatabaseSync } = await import("@photostructure/sqlite");
      try { new DatabaseSync(${JSON.stringify(file)}).exec("select * from groups"); } catch (error) { console.log(error.errcode); }`;
    const child = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
    expect(child.stdout.trim()).toBe("5");
    await store.stop();
  });

  it("refuses calls before start and after stop, and a second start", async () => {
    const store = createSqlStore({ file });
    await expect(store.findHead(group)).rejects.toThrow("not started");
    await store.stop();
    await store.start();
    await expect(store.start()).rejects.toThrow("started already");
    await store.stop();
    await store.stop();
    await expect(store.findHead(group)).rejects.toThrow("not started");
  });

  it("refuses a database of a newer version and leaves it unchanged", async () => {
    const store = createSqlStore({ file });
    await store.start();
    await store.stop();
    await onDatabase(file, async ({ durable }) => {
      await durable.updateTable("schema_version").set({ version: 99 }).execute();
    });
    await expect(store.start()).rejects.toMatchObject({
      fault: "newer",
      message: expect.stringContaining("schema is 99"),
    });
    await onDatabase(file, async ({ durable }) => {
      expect(await durable.selectFrom("schema_version").selectAll().execute()).toEqual([{ version: 99 }]);
      await durable.updateTable("schema_version").set({ version: schemaVersion }).execute();
    });
    await store.start();
    await store.stop();
  });

  it("reports a file that is not a database, and leaves it unchanged", async () => {
    writeFileSync(file, "no database ".repeat(1000));
    await expect(createSqlStore({ file }).start()).rejects.toMatchObject({ fault: "corrupt" });
    expect(readdirSync(join(file, ".."))).toEqual(["store.db"]);
  });

  it("reports a missing folder, and a file that is a folder", async () => {
    const missing = join(file, "none", "store.db");
    await expect(createSqlStore({ file: missing }).start()).rejects.toMatchObject({
      fault: "cannot-open",
      message: expect.stringContaining(missing),
    });
    expect(existsSync(missing)).toBe(false);
    await expect(createSqlStore({ file: join(file, "..") }).start()).rejects.toMatchObject({ fault: "cannot-open" });
  });

  it("undoes a change when the disk is full, and continues when there is room", async () => {
    const { store, database } = await startedWithDatabase(file);
    await store.applyBlocks(group, history);
    await store.insertSubscription(subscriptionOf(1), 0);
    const limitPages = async (pages: number) => sql.raw(`pragma max_page_count = ${pages}`).execute(database());
    await limitPages(1); // SQLite uses the present size if that is more.
    const large = batchOf(alpha, { block: 8, sequence: 9, count: 1, events: new Uint8Array(1 << 20) });
    const gamma = topicOf(parseTopicName("gamma"), 3);
    const blocks = [blockOf(7, { opened: [gamma] }), blockOf(8, { batches: [large] })];
    await expect(store.applyBlocks(group, blocks)).rejects.toMatchObject({
      fault: "full",
      message: expect.stringContaining("the disk is full"),
    });
    expect(await store.findHead(group)).toMatchObject({ blockNumber: 6 });
    expect(await store.findTopic(group, gamma.name)).toBeUndefined();
    expect(await store.findTopic(group, alpha)).toMatchObject({ sequence: 8, blockNumber: 6 });
    const wide = subscriptionOf(2, { delivery: webhookTo({ url: "x".repeat(100_000) }) });
    await expect(store.insertSubscription(wide, 0)).rejects.toMatchObject({ fault: "full" });
    expect(await store.listSubscriptions()).toEqual([subscriptionOf(1)]);
    await limitPages(1_000_000);
    await store.applyBlocks(group, blocks);
    expect(await store.insertSubscription(wide, 0)).toBe("inserted");
    expect(await store.findTopic(group, alpha)).toMatchObject({ sequence: 9, blockNumber: 8 });
    await store.stop();
  });

  it("applyBlocks leaves no trace if it fails to insert or update a topic, a batch or the head", async () => {
    const { store, database } = await startedWithDatabase(file);
    await store.applyBlocks(group, history);
    const blocks = [
      blockOf(7, { opened: [topicOf(parseTopicName("gamma"), 3)] }),
      blockOf(8, { batches: [batchOf(alpha, { block: 8, sequence: 9, count: 1 })] }),
    ];
    for (const target of ["insert on topics", "update on topics", "insert on batches", "update on groups"]) {
      const body = "begin select raise(abort, 'refused'); end";
      await sql.raw(`create trigger refusing before ${target} ${body}`).execute(database());
      await expect(store.applyBlocks(group, blocks)).rejects.toThrow("refused");
      await sql`drop trigger refusing`.execute(database());
      expect(await store.findHead(group)).toMatchObject({ blockNumber: 6 });
      expect((await store.listTopics(group, { offset: 0, limit: 9 })).total).toBe(2);
      expect(await store.findTopic(group, alpha)).toMatchObject({ sequence: 8 });
      expect(await store.findBatch(group, { topic: alpha, sequence: 9 })).toBeUndefined();
    }
    await store.applyBlocks(group, blocks);
    expect(await store.countEventsAfter(group, alpha, toPosition(6, 0))).toBe(1);
    await store.stop();
  });
});

async function onDatabase(file: string, action: (database: SqlDatabase) => Promise<void>): Promise<void> {
  const database = await createSqliteBackend(file).open();
  try {
    await action(database);
  } finally {
    await database.close();
  }
}

/** A started store, and access to its database, so that a test can make it fail. */
async function startedWithDatabase(file: string) {
  const backend = createSqliteBackend(file);
  const opened: SqlDatabase[] = [];
  const store = new SqlStore(
    {
      ...backend,
      open: async () => {
        const database = await backend.open();
        opened.push(database);
        return database;
      },
    },
    silentLogger,
  );
  await store.start();
  const database = () => {
    const [first] = opened;
    if (first === undefined) throw new Error("the store did not open its database");
    return first.relaxed;
  };
  return { store, database };
}
