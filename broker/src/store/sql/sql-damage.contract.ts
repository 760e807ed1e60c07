import { type Kysely, sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EventBatch } from "../../domain/event.ts";
import { endOfBlock, positionZero, toPosition } from "../../domain/position.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { silentLogger } from "../../lib/logger.ts";
import { type BatchRange, IndexDamagedError } from "../../ports/store.ts";
import { testDamage } from "../../ports/store-damage.contract.ts";
import {
  alpha,
  beta,
  blockOf,
  group,
  history,
  subscriptionOf,
  topicOf,
  webhookTo,
} from "../../ports/store-examples.contract.ts";
import type { Schema, SqlBackend, SqlDatabase } from "./schema.ts";
import { SqlStore } from "./sql-store.ts";

const everything: BatchRange = {
  after: positionZero,
  upTo: endOfBlock(6),
  topic: undefined,
  batchesMax: 1000,
  bytesMax: 1 << 30,
};
const retainedPage = { prefix: "", after: undefined, limit: 9 };
/** The batch of alpha's events 4 and 5. */
const row = sql`first_sequence = 4`;

/** Tests what a store answers after its rows were changed. */
export function testSqlDamage(name: string, create: () => Promise<SqlBackend>): void {
  const open = async () => {
    const backend = await create();
    const opened: SqlDatabase[] = [];
    const store = new SqlStore({ ...backend, open: async () => keep(await backend.open(), opened) }, silentLogger);
    const database = (): Kysely<Schema> => {
      const last = opened.at(-1);
      if (last === undefined) throw new Error("the store did not open its database");
      return last.relaxed;
    };
    return { store, database };
  };

  testDamage(name, async () => {
    const { store, database } = await open();
    const damageEvents = async ({ firstSequence, events }: EventBatch) => {
      const changed = Uint8Array.from(events, (byte, index) => (index === 100 ? byte ^ 1 : byte));
      await sql`update batches set events = ${changed} where first_sequence = ${firstSequence}`.execute(database());
    };
    return { store, damageEvents };
  });

  describe(`${name} with damaged rows`, () => {
    let store: SqlStore;
    let change: (statement: ReturnType<typeof sql>) => Promise<unknown>;
    beforeEach(async () => {
      const opened = await open();
      store = opened.store;
      change = (statement) => statement.execute(opened.database());
      await store.start();
      await store.applyBlocks(group, history);
    });
    afterEach(async () => store.stop());

    const read = () => store.readBatches(group, everything);
    const repairAll = async (): Promise<number> => {
      let count = 0;
      for (const block of history) count += (await store.repairBatches(group, block)).length;
      return count;
    };
    const intact = history.flatMap(({ batches }) => batches);

    it.each([
      ["ordinal", sql`ordinal = ordinal + 8`],
      ["first_position", sql`first_position = first_position - 1`],
      ["last_position", sql`last_position = last_position + 64`],
      ["topic_id", sql`topic_id = (select topic_id from topics where name = 'beta'), first_sequence = 20`],
      ["first_sequence", sql`first_sequence = first_sequence + 64`],
      ["events_before", sql`events_before = events_before + 1`],
      ["byte_count", sql`byte_count = byte_count + 1`],
      ["transaction_hash", sql`transaction_hash = ${`0x${"ab".repeat(32)}`}`],
      ["log_index", sql`log_index = log_index + 2`],
      ["publisher", sql`publisher = ${`0x${"ab".repeat(20)}`}`],
      ["events_checksum", sql`events_checksum = events_checksum + 1`],
      ["checksum", sql`checksum = checksum + 1`],
      ["events to an empty value", sql`events = ${new Uint8Array(0)}`],
    ])("throws IndexDamagedError after a change of %s, until the batch is repaired", async (_, assignment) => {
      await change(sql`update batches set ${assignment} where ${row}`);
      await expect(read()).rejects.toBeInstanceOf(IndexDamagedError);
      await expect(store.findBatch(group, { topic: alpha, sequence: 5 })).rejects.toBeInstanceOf(IndexDamagedError);
      expect(await repairAll()).toBe(1);
      expect(await read()).toEqual(intact);
      expect(await store.findBatch(group, { topic: alpha, sequence: 5 })).toEqual(intact[3]);
      expect(await store.countEventsAfter(group, beta, positionZero)).toBe(3);
    });

    it.each([
      ["events_before", sql`events_before = events_before - 1`],
      ["first_position", sql`first_position = first_position - 1`],
    ])("counts throw IndexDamagedError after a change of %s, until the batch is repaired", async (_, assignment) => {
      const places = [{ topic: alpha, after: toPosition(2, 9) }];
      const range = { after: positionZero, upTo: endOfBlock(6), batchesMax: 10 };
      const counts = async () => [
        await store.countEventsAfterEach(group, places),
        await store.countRange(group, range),
      ];
      const expected = await counts();
      await change(sql`update batches set ${assignment} where ${row}`);
      await expect(store.countEventsAfterEach(group, places)).rejects.toBeInstanceOf(IndexDamagedError);
      await expect(store.countRange(group, range)).rejects.toBeInstanceOf(IndexDamagedError);
      expect(await repairAll()).toBe(1);
      expect(await counts()).toEqual(expected);
    });

    it.each([
      ["log_index", sql`log_index = log_index + 2`],
      ["the sign of its checksum", sql`checksum = -1 - checksum`],
      ["its events, which must be empty", sql`events = ${Uint8Array.of(1)}`],
    ])(
      "throws IndexDamagedError for a dropped batch after a change of %s, until the batch is repaired",
      async (_, assignment) => {
        const batch = intact[3];
        expect(await store.dropEvents(group, batch === undefined ? [] : [batch])).toHaveLength(1);
        await change(sql`update batches set ${assignment} where ${row}`);
        await expect(read()).rejects.toBeInstanceOf(IndexDamagedError);
        expect(await repairAll()).toBe(1);
        expect(await read()).toEqual(intact);
      },
    );

    it.each([
      ["first_position", sql`first_position = -1`],
      ["last_position", sql`last_position = last_position + 1073741824`],
      ["topic_id", sql`topic_id = (select topic_id from topics where name = 'beta'), first_sequence = 20`],
    ])("rolls back past a batch after a change of %s, and forgets the batch", async (_, assignment) => {
      await change(sql`update batches set ${assignment} where ${row}`);
      const { eventCount } = await store.rollBack(group, { number: 2, hash: history[1]?.hash ?? "0x" });
      const others = intact.filter((batch) => batch.blockNumber > 2 && batch !== intact[3]);
      expect(eventCount).toBe(others.reduce((sum, { count }) => sum + count, 0));
      await store.applyBlocks(group, history.slice(2));
      expect(await read()).toEqual(intact);
    });

    it("detects a missing batch at the start, in the middle and at the end of a range", async () => {
      await change(sql`delete from batches where ${row}`);
      const ranges: readonly Partial<BatchRange>[] = [
        {},
        { topic: alpha },
        { after: toPosition(4, 0) },
        { after: toPosition(4, 0), topic: alpha },
        { upTo: endOfBlock(5) },
        { upTo: endOfBlock(5), topic: alpha },
        { after: toPosition(4, 0), upTo: endOfBlock(5) },
        { after: toPosition(4, 0), upTo: endOfBlock(5), topic: alpha },
      ];
      for (const range of ranges) {
        await expect(store.readBatches(group, { ...everything, ...range })).rejects.toBeInstanceOf(IndexDamagedError);
      }
      await expect(store.findBatch(group, { topic: alpha, sequence: 5 })).rejects.toMatchObject({
        blocks: expect.arrayContaining([4]),
      });
      expect(await repairAll()).toBe(1);
      expect(await read()).toEqual(intact);
    });

    it.each([
      ["damaged", row],
      [
        "not damaged, but another batch of the block is",
        sql`topic_id = (select topic_id from topics where name = 'beta') and first_sequence = 3`,
      ],
    ])(
      "still detects a missing batch after the repair of a later block whose batch of the same topic is %s",
      async (_, which) => {
        const isMissing = sql`topic_id = (select topic_id from topics where name = 'alpha') and first_sequence = 1`;
        await change(sql`delete from batches where ${isMissing}`);
        await change(sql`update batches set log_index = log_index + 2 where ${which}`);
        expect(await store.repairBatches(group, history[2] ?? blockOf(4))).toHaveLength(1);
        await expect(store.findBatch(group, { topic: alpha, sequence: 2 })).rejects.toBeInstanceOf(IndexDamagedError);
        await expect(read()).rejects.toBeInstanceOf(IndexDamagedError);
        expect(await repairAll()).toBe(1);
        expect(await read()).toEqual(intact);
        expect(await store.countEventsAfter(group, alpha, positionZero)).toBe(6);
      },
    );

    it("detects that the newest batch is missing", async () => {
      await change(sql`delete from batches where first_sequence = 8`);
      await expect(read()).rejects.toBeInstanceOf(IndexDamagedError);
      await expect(store.findBatch(group, { topic: alpha, sequence: 8 })).rejects.toBeInstanceOf(IndexDamagedError);
      expect(await repairAll()).toBe(1);
      expect(await read()).toEqual(intact);
    });

    it("findBatch returns undefined for skipped and future sequences", async () => {
      expect(await store.findBatch(group, { topic: alpha, sequence: 6 })).toBeUndefined();
      expect(await store.findBatch(group, { topic: alpha, sequence: 7 })).toBeUndefined();
      expect(await store.findBatch(group, { topic: alpha, sequence: 9 })).toBeUndefined();
    });

    it.each([
      ["cursor", sql`cursor = cursor + 1024`],
      ["notified_count", sql`notified_count = notified_count + 2`],
      ["notified_at", sql`notified_at = notified_at - 4`],
      ["filter", sql`filter = 'alpha/+'`],
      ["url", sql`url = 'http://127.0.0.1:9/other'`],
      ["state", sql`state = 'suspended'`],
    ])("returns a subscription in the state damaged after a change of its %s", async (_, assignment) => {
      await store.insertSubscription(subscriptionOf(1), 0);
      await store.insertSubscription(subscriptionOf(2), 0);
      await change(sql`update subscriptions set ${assignment} where id = ${subscriptionOf(1).id}`);
      expect(await store.findSubscription(subscriptionOf(1).id)).toMatchObject({ state: "damaged" });
      expect(await store.listSubscriptions()).toEqual([
        expect.objectContaining({ id: subscriptionOf(1).id, state: "damaged" }),
        subscriptionOf(2),
      ]);
      await store.rollBack(group, { number: 1, hash: history[0]?.hash ?? "0x" });
      expect(await store.findSubscription(subscriptionOf(1).id)).toMatchObject({ state: "damaged" });
      expect(await store.setSubscriptionState(subscriptionOf(1), "active")).toBe(false);
      expect(await store.deleteSubscription(subscriptionOf(1))).toBe(true);
    });

    it("keeps a subscription's row intact through progress, a rollback, and changes of its state, callback and secret", async () => {
      const { id } = subscriptionOf(1);
      await store.insertSubscription(subscriptionOf(1, { cursor: toPosition(1, 0) }), 0);
      await store.saveProgress([
        {
          id,
          epoch: 0,
          cursor: toPosition(4, 2),
          notifiedCount: 6,
          notifiedAt: 1_800_000_000_000,
          failedAttempts: 0,
          failedMs: 0,
          failingSince: 0,
          retryAt: 0,
        },
      ]);
      await store.setSubscriptionState({ id, epoch: 0 }, "suspended");
      const delivery = webhookTo({ url: "http://127.0.0.1:9/b", format: "JsonRPC", secret: "new" });
      const change = { delivery, state: "active" } as const;
      await store.updateSubscription({ id, epoch: 0 }, change);
      expect(await store.replaceSecrets([{ id, from: "new", to: "newer" }])).toBe(1);
      expect(await store.findSubscription(id)).toMatchObject({
        state: "active",
        delivery: { ...delivery, secret: "newer" },
        notifiedCount: 6,
      });
      await store.rollBack(group, { number: 2, hash: history[1]?.hash ?? "0x" });
      expect(await store.findSubscription(id)).toMatchObject({ state: "active", cursor: endOfBlock(2) });
    });

    it("rolls back in few statements over a topic whose ordinal is damaged", async () => {
      const block = blockOf(7, { opened: [topicOf(parseTopicName("c"), 3)] });
      await store.applyBlocks(group, [block]);
      await change(sql`update topics set ordinal = ${2 ** 50} where name = 'c'`);
      const result = await store.rollBack(group, { number: 6, hash: history.at(-1)?.hash ?? "0x" });
      expect(result).toMatchObject({ topicCount: 1 });
      expect((await store.listTopics(group, { offset: 0, limit: 9 })).total).toBe(2);
    });

    it.each([
      ["a topic's name", sql`update topics set name = 'alphb' where name = 'alpha'`],
      ["a topic's address", sql`update topics set address = replace(address, '1', '3') where name = 'alpha'`],
      ["a topic's sequence", sql`update topics set sequence = sequence + 4 where name = 'alpha'`],
      ["the head", sql`update groups set block_number = block_number + 1`],
      ["a block", sql`update blocks set hash = replace(hash, '4', '5') where number = 4`],
      ["a retained event's topic", sql`update retained set name = 'betb'`],
      ["a retained event's sequence", sql`update retained set sequence = sequence - 1`],
    ])("empties the index at the start after a change of %s, and keeps subscriptions", async (_, statement) => {
      await store.insertSubscription(subscriptionOf(1), 0);
      const place = { sequence: 3, position: toPosition(4, 0) };
      await store.applyBlocks(group, [blockOf(7, { retained: [{ name: beta, retained: place }] })]);
      await change(statement);
      const all = async () => {
        await store.listTopics(group, { offset: 0, limit: 9 });
        await store.findHead(group);
        await store.listRetained(group, retainedPage);
        await store.rollBack(group, { number: 2, hash: history[1]?.hash ?? "0x" });
      };
      await expect(all()).rejects.toMatchObject({ fault: "corrupt", message: expect.stringContaining("start") });
      await store.stop();
      await store.start();
      expect(await store.findHead(group)).toBeUndefined();
      expect((await store.listTopics(group, { offset: 0, limit: 9 })).total).toBe(0);
      expect(await store.listRetained(group, retainedPage)).toEqual([]);
      expect(await store.listSubscriptions()).toEqual([subscriptionOf(1)]);
      await store.applyBlocks(group, history);
      expect(await read()).toEqual(intact);
    });
  });
}

function keep(database: SqlDatabase, opened: SqlDatabase[]): SqlDatabase {
  opened.push(database);
  return database;
}
