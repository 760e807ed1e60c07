import type { KyselyPlugin, QueryResult, UnknownRow } from "kysely";
import { expect, it } from "vitest";
import type { GroupId } from "../../domain/group-id.ts";
import { toPosition } from "../../domain/position.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { parseTopicName, type TopicName } from "../../domain/topic-name.ts";
import { silentLogger } from "../../lib/logger.ts";
import { chunksOf } from "../../lib/chunks.ts";
import { toNewSession } from "../../ports/claimed-session.ts";
import type { BlockRef } from "../../ports/ledger.ts";
import type { ShareId } from "../../ports/session-store.ts";
import { claimOf, filterOf, idOf } from "../../ports/session-examples.contract.ts";
import { letterOf } from "../../ports/store-dead-letters.contract.ts";
import { batchOf, blockOf, group, otherGroup, subscriptionOf, topicOf } from "../../ports/store-examples.contract.ts";
import { toSubscriptionRow } from "./rows.ts";
import type { SqlBackend, SqlDatabase } from "./schema.ts";
import { toFilterRow, toSessionRow } from "./sessions/session-rows.ts";
import { toShareEventRow, toShareRow } from "./sessions/share-rows.ts";
import { toLetterRow } from "./subscriptions/dead-letter-rows.ts";
import { SqlStore } from "./sql-store.ts";

const topicCount = 1000;
/** Maximum number of statements for a block or for 100 subscriptions, without begin, commit, and those that an in-process database runs for each row. */
const statementsMax = 20;
/** Additional statements for a block with `topicCount` retained events: two look-ups and six inserts. A block without retained events needs none. */
const retainedStatementsMax = 8;
const names = Array.from({ length: topicCount }, (_, index) => parseTopicName(`topic/${index}`));

/** A backend that calls `count` for every statement that waits for an answer, with its result. */
function countStatements(backend: SqlBackend, count: (result: QueryResult<UnknownRow>) => void): SqlBackend {
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      count(result);
      return result;
    },
  };
  const counted = (database: SqlDatabase): SqlDatabase => ({
    ...database,
    durable: database.durable.withPlugin(plugin),
    urgent: database.urgent.withPlugin(plugin),
    relaxed: database.relaxed.withPlugin(plugin),
    migrating: database.migrating.withPlugin(plugin),
  });
  return { ...backend, open: async () => counted(await backend.open()) };
}

/** Bounds the number of statements for a block, and for many subscriptions. `create` returns an empty database. */
export function testSqlStatements(name: string, create: () => Promise<SqlBackend>): void {
  it.each([true, false])(
    `${name} indexes a block with events of many topics, and inserts many subscriptions, in few statements (final: %s)`,
    async (isFinal) => {
      let statements = 0;
      const backend = countStatements(await create(), () => {
        statements += 1;
      });
      const statementsOf = async (run: () => Promise<void>): Promise<number> => {
        statements = 0;
        await run();
        return statements;
      };
      const store = new SqlStore(backend, silentLogger);
      const publishIn = (block: number, retaining: readonly TopicName[] = []) =>
        store.applyBlocks(
          group,
          [
            blockOf(block, {
              batches: names.map((topic, index) => batchOf(topic, { block, index, sequence: block - 1, count: 1 })),
              retained: retaining.map((name, index) => ({
                name,
                retained: { sequence: block - 1, position: toPosition(block, index) },
              })),
            }),
          ],
          { isFinal },
        );
      await store.start();
      const opened = names.map((topic, index) => topicOf(topic, index + 1));
      expect(
        await statementsOf(() => store.applyBlocks(group, [blockOf(1, { opened })], { isFinal })),
      ).toBeLessThanOrEqual(statementsMax);
      expect(await statementsOf(() => publishIn(2))).toBeLessThanOrEqual(statementsMax);
      await store.stop();
      await store.start(); // Now the caches are empty.
      const plain = await statementsOf(() => publishIn(3));
      const marked = await statementsOf(() => publishIn(4, names));
      await store.stop();
      await store.start();
      expect(marked).toBeGreaterThan(plain); // The counter works.
      expect(marked - plain).toBeLessThanOrEqual(retainedStatementsMax);
      const withoutMemory = await statementsOf(() => publishIn(5));
      expect(withoutMemory).toBeGreaterThan(1);
      expect(withoutMemory).toBeLessThanOrEqual(statementsMax);
      const insertMany = async (): Promise<void> => {
        const numbers = Array.from({ length: 100 }, (_, number) => number);
        await Promise.all(numbers.map((number) => store.insertSubscription(subscriptionOf(number), 0)));
      };
      expect(await statementsOf(insertMany)).toBeLessThanOrEqual(statementsMax);
      expect(await store.findTopic(group, names[0] ?? parseTopicName("none"))).toMatchObject({ sequence: 4 });
      await store.stop();
    },
  );

  it(`${name} reads 1,000 subscriptions with each statement of a rollback, even if it need not move them`, async () => {
    let statements = 0;
    const backend = countStatements(await create(), () => {
      statements += 1;
    });
    const store = new SqlStore(backend, silentLogger);
    await store.start();
    const rollBack = async (): Promise<number> => {
      await store.applyBlocks(group, [blockOf(2)]);
      statements = 0;
      await store.rollBack(group, toRef(1));
      return statements;
    };
    await store.applyBlocks(group, [blockOf(1)]);
    const none = await rollBack();
    const generation = 1;
    const cursor = toPosition(1, 0);
    const subscriptions = Array.from({ length: 2_001 }, (_, number) => subscriptionOf(number, { cursor }));
    await Promise.all(subscriptions.map((subscription) => store.insertSubscription(subscription, generation)));
    expect((await rollBack()) - none).toBe(2 + 3); // Each page deletes dead letters.
    await store.stop();
  });

  it(`${name} reads and changes the rows of at most 1,000 batches, topics or owners with each statement of a rollback`, async () => {
    let rowsMost = 0;
    let rows = 0;
    const backend = countStatements(await create(), ({ rows: read, numAffectedRows = 0n }) => {
      rowsMost = Math.max(rowsMost, read.length, Number(numAffectedRows));
      rows += Number(numAffectedRows);
    });
    const database = await backend.open();
    const store = new SqlStore({ ...backend, open: async () => database }, silentLogger);
    await store.start();
    const topic = parseTopicName("a");
    const batches = Array.from({ length: 2_001 }, (_, index) =>
      batchOf(topic, { block: 5, index, sequence: index + 1, count: 1 }),
    );
    const opened = batches.map((_, index) => topicOf(parseTopicName(`b/${index}`), index + 2));
    await store.applyBlocks(group, [blockOf(1, { opened: [topicOf(topic, 1)] }), blockOf(5, { opened, batches })]);
    for (const page of chunksOf(rowsBeyond(2_001), 500)) {
      await database.relaxed
        .insertInto("subscriptions")
        .values(page.map((row) => row.subscription))
        .execute();
      await database.relaxed
        .insertInto("dead_letters")
        .values(page.map((row) => row.letter))
        .execute();
      await database.relaxed
        .insertInto("sessions")
        .values(page.map((row) => row.session))
        .execute();
      await database.relaxed
        .insertInto("session_subscriptions")
        .values(page.map((row) => row.filter))
        .execute();
      await database.relaxed
        .insertInto("shares")
        .values(page.map((row) => row.share))
        .execute();
      await database.relaxed
        .insertInto("share_events")
        .values(page.map((row) => row.event))
        .execute();
    }
    [rowsMost, rows] = [0, 0];
    expect(await store.rollBack(group, toRef(1))).toMatchObject({ eventCount: 2_001, topicCount: 2_001 });
    expect(rowsMost).toBe(1_000);
    expect(rows).toBeGreaterThanOrEqual(9 * 2_001); // Also deletes topics and batches, and remembers batches.
    await store.stop();
  });

  it(`${name} finds the returned events of some shares without reading the events of other shares before, between and after them`, async () => {
    let statements = 0;
    let database: SqlDatabase | undefined;
    const backend = countStatements(await create(), () => {
      statements += 1;
    });
    const store = new SqlStore({ ...backend, open: async () => (database = await backend.open()) }, silentLogger);
    await store.start();
    const counts = { a: 5_000, b: 1, c: 5_000, d: 1, e: 5_000 };
    const gone = { topic: "a", session_id: "none", session_epoch: 0, given_epoch: 0 };
    const rows = Object.entries(counts).flatMap(([share_id, count]) =>
      Array.from({ length: count }, (_, index) =>
        toShareEventRow({ ...gone, share_id, position: toPosition(1, index + 1) }),
      ),
    );
    for (const page of chunksOf(rows, 500)) await database?.relaxed.insertInto("share_events").values(page).execute();
    statements = 0;
    const found = await store.shares.findReturning(["d", "b"] as ShareId[]);
    expect(found.toSorted()).toEqual(["b", "d"]);
    expect(statements).toBeLessThanOrEqual(4); // A range for each share, in two statements; all events would take 16.
    await store.stop();
  });

  it(`${name} begins a thousand shares in few statements, even if another group has sessions with the same filters`, async () => {
    let statements = 0;
    const backend = countStatements(await create(), () => {
      statements += 1;
    });
    const store = new SqlStore(backend, silentLogger);
    await store.start();
    const shares = Array.from({ length: 1_000 }, (_, index) => parseTopicFilter(`$share/workers/${index}`));
    const join = async (number: number, groupId: GroupId): Promise<number> => {
      const claimed = await store.sessions.claimSession(
        claimOf({ newId: idOf(number), key: `client ${number}`, groupId }),
      );
      if (claimed.status !== "begun" || claimed.current === undefined) throw new Error(`it is ${claimed.status}`);
      const put = shares.map((filter, index) => filterOf(number * 1_000 + index, { filter }));
      statements = 0;
      await store.sessions.saveSessionFilters(claimed.current, { put, removed: [], generation: 0 });
      expect((await store.shares.findShareCursors(groupId, shares)).size).toBe(1_000);
      return statements;
    };
    const alone = await join(1, otherGroup);
    expect(alone).toBeGreaterThan(10); // The counter works.
    expect(alone).toBeLessThanOrEqual(200);
    expect(await join(2, group)).toBe(alone);
    await store.stop();
  });

  it(`${name} reads and deletes the undo data of at most 16 blocks with each statement`, async () => {
    let blocksMost = 0;
    const backend = countStatements(await create(), ({ rows, numAffectedRows = 0n }) => {
      const read = rows.filter((row) => "undo" in row).length;
      blocksMost = Math.max(blocksMost, read, Number(numAffectedRows));
    });
    const store = new SqlStore(backend, silentLogger);
    await store.start();
    for (let number = 1; number <= 40; number += 1) await store.applyBlocks(group, [blockOf(number)]);
    await store.stop();
    await store.start();
    expect(blocksMost).toBe(16);
    blocksMost = 0;
    expect(await store.listBlocks(group, { atMost: 99 })).toHaveLength(40);
    expect(blocksMost).toBe(0);
    await store.rollBack(group, toRef(1));
    expect(blocksMost).toBe(16);
    expect(await store.listBlocks(group, { atMost: 99 })).toEqual([toRef(1)]);
    await store.stop();
  });
}

function toRef(number: number): BlockRef {
  return { number, hash: blockOf(number).hash };
}

/** Rows of each kind that a rollback to block 1 changes or deletes. */
function rowsBeyond(count: number) {
  const place = toPosition(4, 1);
  return Array.from({ length: count }, (_, number) => {
    const session = toSessionRow(toNewSession(claimOf({ newId: idOf(number), key: `client ${number}` })));
    const event = { share_id: `share ${number}`, position: place, topic: "a" };
    const member = { session_id: session.session_id, session_epoch: 7, given_epoch: 7 };
    const share = { share_id: event.share_id, group_id: group, filter: `$share/${number}/a`, cursor: place, epoch: 0 };
    return {
      subscription: toSubscriptionRow(subscriptionOf(number, { cursor: place })),
      letter: toLetterRow(letterOf(number, place)),
      session,
      filter: toFilterRow(session.session_id, filterOf(number)),
      share: toShareRow(share),
      event: toShareEventRow({ ...event, ...member }),
    };
  });
}
