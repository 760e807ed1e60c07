import { readFileSync, writeFileSync } from "node:fs";
import { sql } from "kysely";
import { beforeEach, expect, it } from "vitest";
import { parseTopicName } from "../../../domain/topic-name.ts";
import { type LogFields, silentLogger } from "../../../lib/logger.ts";
import { batchOf, blockOf, group, history, subscriptionOf, topicOf } from "../../../ports/store-examples.contract.ts";
import { temporaryFile } from "../../temporary-file.contract.ts";
import { createSqlStore } from "../sql-store.ts";
import { createSqliteBackend } from "./sqlite-backend.ts";

const gamma = topicOf(parseTopicName("gamma"), 3);
const batch = batchOf(gamma.name, { block: 7, sequence: 1, count: 1 });

let file: string;
let warnings: (LogFields | undefined)[];
beforeEach(() => {
  file = temporaryFile();
  warnings = [];
});

const logger = { ...silentLogger, warn: (_: string, fields?: LogFields) => void warnings.push(fields) };

type Store = ReturnType<typeof createSqlStore>;

async function onStore(action: (store: Store) => Promise<void>): Promise<void> {
  const store = createSqlStore({ file, logger });
  await store.start();
  try {
    await action(store);
  } finally {
    await store.stop();
  }
}

async function onDatabase(statement: ReturnType<typeof sql>): Promise<readonly unknown[]> {
  const database = await createSqliteBackend(file).open();
  try {
    return (await statement.execute(database.durable)).rows;
  } finally {
    await database.close();
  }
}

async function rootPageOf(name: string): Promise<number> {
  const [row] = await onDatabase(sql`select rootpage from sqlite_schema where name = ${name}`);
  return (row as { rootpage: number }).rootpage; // The column's type.
}

/** Restores the root page of a table or index from `old`, as if the disk had lost the later writes. */
async function loseWrites(old: Buffer, name: string): Promise<void> {
  const bytes = readFileSync(file);
  const size = bytes.readUInt16BE(16);
  const from = ((await rootPageOf(name)) - 1) * size;
  old.copy(bytes, from, from, from + size);
  writeFileSync(file, bytes);
}

it("names the subscriptions that a stale page lost, and refuses to start until the operator accepts the loss", async () => {
  await onStore(async (store) => void (await store.insertSubscription(subscriptionOf(1), 0)));
  const old = readFileSync(file);
  await onStore(async (store) => void (await store.insertSubscription(subscriptionOf(2), 0)));
  await loseWrites(old, "subscriptions");
  const says = new RegExp(
    `${file} is damaged: its table subscriptions .*: ${subscriptionOf(2).id}\\. Restore only the store .*reindex`,
  );
  await expect(onStore(async () => {})).rejects.toMatchObject({
    fault: "corrupt",
    message: expect.stringMatching(says),
  });
  await onDatabase(sql`reindex subscriptions`);
  await onStore(async (store) => expect(await store.listSubscriptions()).toEqual([subscriptionOf(1)]));
});

it.each(["subscriptions_by_receiver", "sqlite_autoindex_subscriptions_1"])(
  "refuses to start on a stale page of the database index %s",
  async (index) => {
    await onStore(async (store) => void (await store.insertSubscription(subscriptionOf(1), 0)));
    const old = readFileSync(file);
    await onStore(async (store) => void (await store.insertSubscription(subscriptionOf(2), 0)));
    await loseWrites(old, index);
    await expect(onStore(async () => {})).rejects.toThrow(
      /its table subscriptions and .* disagree.*Restore only the store/,
    );
  },
);

it.each(["topics", "topics_by_digest", "groups"])(
  "empties the index at the start after a stale page of %s, and keeps subscriptions",
  async (name) => {
    await onStore(async (store) => store.applyBlocks(group, history, { isFinal: true }));
    const old = readFileSync(file);
    await onStore(async (store) => {
      await store.insertSubscription(subscriptionOf(1), 0);
      await store.applyBlocks(group, [blockOf(7, { opened: [gamma], batches: [batch] })], { isFinal: true });
    });
    await loseWrites(old, name);
    await onStore(async (store) => {
      expect(await store.findHead(group)).toBeUndefined();
      expect((await store.listTopics(group, { offset: 0, limit: 9 })).total).toBe(0);
      expect(await store.listSubscriptions()).toEqual([subscriptionOf(1)]);
      await store.applyBlocks(group, history, { isFinal: true });
    });
    expect(warnings).toEqual([
      expect.objectContaining({
        database: expect.stringContaining(file),
        table: name.split("_")[0],
        found: expect.any(String),
      }),
    ]);
  },
);
