import { topicDigest } from "@stele/wire";
import { expect, it } from "vitest";
import { blockNumberMax, endOfBlock, positionZero, toPosition } from "../domain/position.ts";
import { nothingFailed } from "../domain/subscription.ts";
import { parseTopicFilter, type TopicFilter } from "../domain/topic-filter.ts";
import { parseTopicName } from "../domain/topic-name.ts";
import type { BlockRef } from "./ledger.ts";
import { reorganisationBlocksMax, type Store, vanishedBatchesMax } from "./store.ts";
import {
  alpha,
  batchOf,
  blockOf,
  group,
  hashOf,
  history,
  otherGroup,
  subscriptionOf,
  topicOf,
} from "./store-examples.contract.ts";

const ref = (number: number): BlockRef => ({ number, hash: hashOf(number) });
/** A block for which blocks 6 and later are not too old. */
const far = 6 + reorganisationBlocksMax;
const everything = {
  after: positionZero,
  upTo: endOfBlock(1_000_000),
  topic: undefined,
  batchesMax: 1000,
  bytesMax: 1 << 30,
};

/** Everything that a group's index returns, except its generation. */
export async function readIndex(store: Store, of = group): Promise<unknown> {
  const { total, topics } = await store.listTopics(of, { offset: 0, limit: 99 });
  const batches = await store.readBatches(of, everything);
  const places = [positionZero, ...batches.map(({ firstPosition }) => firstPosition)];
  const details = topics.map(async (topic) => ({
    byAddress: await store.findTopicsByAddress(of, [topic.address]),
    byDigest: await store.findTopicsByDigest(of, topicDigest(topic.name)),
    last: await store.findBatch(of, { topic: topic.name, sequence: topic.sequence }),
    counts: await Promise.all(places.map((place) => store.countEventsAfter(of, topic.name, place))),
  }));
  const head = await store.findHead(of);
  const block = head && { number: head.blockNumber, hash: head.hash };
  const retained = await store.listRetained(of, { prefix: "", after: undefined, limit: 99 });
  return { block, total, topics, batches, retained, details: await Promise.all(details) };
}

/** The store's guarantees about rollbacks. */
export function testRollBack(store: () => Store): void {
  it.each([1, 2, 4, 5, 6])(
    "rolling back to block %i restores the index as of that block, and later blocks can be applied again",
    async (to) => {
      for (const block of history) await store().applyBlocks(group, [block]);
      await store().applyBlocks(otherGroup, history.slice(0, history.findIndex(({ number }) => number === to) + 1));
      await store().rollBack(group, ref(to));
      expect(await readIndex(store())).toEqual(await readIndex(store(), otherGroup));
      const rest = history.filter(({ number }) => number > to);
      await store().applyBlocks(group, rest);
      await store().applyBlocks(otherGroup, rest);
      expect(await readIndex(store())).toEqual(await readIndex(store(), otherGroup));
      expect(await store().findTopic(group, alpha)).toMatchObject({ sequence: 8, blockNumber: 6 });
    },
  );
  it("rolling back to the empty index empties the index of one group, and of no other", async () => {
    await store().applyBlocks(group, history);
    await store().applyBlocks(otherGroup, history);
    const done = await store().rollBack(group, undefined);
    expect(done).toMatchObject({ eventCount: 9, topicCount: 2 });
    expect(await readIndex(store())).toEqual({
      block: undefined,
      total: 0,
      topics: [],
      batches: [],
      retained: [],
      details: [],
    });
    expect(await store().listBlocks(group, { atMost: 9 })).toEqual([]);
    expect(await store().findHead(otherGroup)).toEqual({ blockNumber: 6, hash: hashOf(6), generation: 0 });
    await store().applyBlocks(group, history);
    expect(await readIndex(store())).toEqual(await readIndex(store(), otherGroup));
  });
  it("rolling back undoes the opening, closing and reopening of topics after the block", async () => {
    const gamma = topicOf(parseTopicName("gamma"), 3);
    await store().applyBlocks(group, history);
    const before = await readIndex(store());
    await store().applyBlocks(group, [
      blockOf(7, { opened: [gamma], closed: [{ name: alpha, closed: true }] }),
      blockOf(8, {
        closed: [
          { name: alpha, closed: false },
          { name: gamma.name, closed: true },
        ],
        batches: [batchOf(gamma.name, { block: 8, sequence: 1, count: 1 })],
      }),
    ]);
    const done = await store().rollBack(group, ref(6));
    expect(done).toEqual({ eventCount: 1, topicCount: 1 });
    const gone = { digest: topicDigest(gamma.name), sequence: 1, blockNumber: 8 };
    expect(await store().findVanished(group, gone)).toMatchObject({ topic: "gamma", firstSequence: 1, count: 1 });
    expect(await readIndex(store())).toEqual(before);
    expect(await store().findTopic(group, gamma.name)).toBeUndefined();
    expect(await store().findTopicsByAddress(group, [gamma.address])).toEqual([]);
    expect(await store().findTopicsByDigest(group, topicDigest(gamma.name))).toEqual([]);
    const delta = { ...gamma, name: parseTopicName("delta") };
    await store().applyBlocks(group, [blockOf(7, { opened: [delta] })]);
    expect(await store().findTopicsByAddress(group, [gamma.address])).toEqual([delta]);
    expect(await store().countEventsAfter(group, delta.name, positionZero)).toBe(0);
  });
  it("lists the applied blocks that it can roll back to, newest first, in pages", async () => {
    await store().applyBlocks(group, history);
    expect(await store().listBlocks(group, { atMost: 9 })).toEqual([6, 5, 4, 2, 1].map(ref));
    expect(await store().listBlocks(group, { atMost: 2 })).toEqual([6, 5].map(ref));
    expect(await store().listBlocks(group, { atMost: 2, below: 5 })).toEqual([4, 2].map(ref));
    expect(await store().listBlocks(group, { atMost: 2, below: 1 })).toEqual([]);
    await store().rollBack(group, ref(4));
    expect(await store().listBlocks(group, { atMost: 9 })).toEqual([4, 2, 1].map(ref));
  });
  it("rolling back to the head removes nothing", async () => {
    await store().applyBlocks(group, history);
    const before = await readIndex(store());
    expect(await store().rollBack(group, ref(6))).toEqual({ eventCount: 0, topicCount: 0 });
    expect(await readIndex(store())).toEqual(before);
  });
  it.each([
    ["that was never applied", ref(3)],
    ["above the head", ref(7)],
    ["with another hash", { number: 4, hash: hashOf(99) }],
  ])("refuses to roll back to a block %s, and changes nothing", async (_, to) => {
    await store().applyBlocks(group, history);
    const before = await readIndex(store());
    await expect(store().rollBack(group, to)).rejects.toThrow(/cannot roll back/);
    expect(await readIndex(store())).toEqual(before);
  });
  it("can roll back to the head, but to no earlier final block", async () => {
    await store().applyBlocks(group, history, { isFinal: true });
    expect(await store().listBlocks(group, { atMost: 9 })).toEqual([ref(6)]);
    await expect(store().rollBack(group, ref(5))).rejects.toThrow(/cannot roll back/);
  });
  it.each([
    ["one step", [[...history, blockOf(far)]]],
    ["two steps", [history, [blockOf(far)]]],
    ["a step within the old blocks", [history.slice(0, 2), [...history.slice(2), blockOf(far)]]],
  ])("forgets blocks too old to roll back to, except for the newest of them, after %s", async (_, steps) => {
    for (const blocks of steps) await store().applyBlocks(group, blocks);
    expect(await store().listBlocks(group, { atMost: 9 })).toEqual([far, 6, 5].map(ref));
    await store().rollBack(group, ref(5));
    expect(await store().findTopic(group, alpha)).toMatchObject({ sequence: 7, blockNumber: 5 });
  });
  testVanished(store);
  testCursors(store);
  testGenerations(store);
}

function testGenerations(store: () => Store): void {
  const generation = async (of = group) => (await store().findHead(of))?.generation;
  it("the head counts the rollbacks, even after a restart", async () => {
    for (const one of [group, otherGroup]) await store().applyBlocks(one, history);
    await store().rollBack(group, ref(4));
    expect(await generation()).toBe(1);
    await store().applyBlocks(group, [blockOf(5)]);
    await store().rollBack(group, ref(5)); // Counts although it removes nothing.
    expect(await generation()).toBe(2);
    await store().stop();
    await store().start();
    expect(await store().findHead(group)).toEqual({ blockNumber: 5, hash: hashOf(5), generation: 2 });
    expect(await generation(otherGroup)).toBe(0);
  });
  it("the number of rollbacks survives the removal of all blocks, and a restart", async () => {
    await store().applyBlocks(group, history);
    await store().rollBack(group, undefined);
    await store().stop();
    await store().start();
    expect(await store().findHead(group)).toBeUndefined();
    await store().applyBlocks(group, history);
    expect(await generation()).toBe(1);
  });
  it("the head counts a rollback of an empty index, but not a refused one", async () => {
    await store().rollBack(group, undefined);
    await store().applyBlocks(group, history);
    expect(await generation()).toBe(1);
    await expect(store().rollBack(group, ref(3))).rejects.toThrow(/cannot roll back/);
    expect(await generation()).toBe(1);
  });
}

function testVanished(store: () => Store): void {
  const find = async (sequence: number, blockNumber: number, of = group): Promise<unknown> =>
    store().findVanished(of, { digest: topicDigest(alpha), sequence, blockNumber });
  it("finds removed events by topic, sequence and block, even if the topic is gone", async () => {
    await store().applyBlocks(group, history);
    const events = await store().rollBack(group, undefined);
    expect(events.eventCount).toBe(9);
    const { events: _, publisher: __, ...batch } = batchOf(alpha, { block: 4, index: 1, sequence: 4, count: 2 });
    expect(await find(4, 4)).toEqual(batch);
    expect(await find(5, 4)).toEqual(batch);
    for (const [sequence, block] of [
      [6, 4],
      [3, 4],
      [4, 5],
      [4, 3],
      [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
      [4, blockNumberMax + 1],
      [4, blockNumberMax],
    ] as const)
      expect(await find(sequence, block)).toBeUndefined();
    expect(await find(4, 4, otherGroup)).toBeUndefined();
  });
  it("keeps only the newest removed batches if a rollback removes more than the limit", async () => {
    const batches = Array.from({ length: vanishedBatchesMax + 1 }, (_, index) =>
      batchOf(alpha, { block: 2, index, sequence: index + 1, count: 1, events: new Uint8Array() }),
    );
    await store().applyBlocks(group, [blockOf(1, { opened: [topicOf(alpha)] }), blockOf(2, { batches })]);
    const done = await store().rollBack(group, ref(1));
    expect(done.eventCount).toBe(vanishedBatchesMax + 1);
    expect(await find(1, 2)).toBeUndefined();
    expect(await find(2, 2)).toMatchObject({ firstSequence: 2 });
  });
}

function made(number: number, filter: TopicFilter, progress: readonly [block: number, index: number, count: number]) {
  const [block, index, notifiedCount] = progress;
  return subscriptionOf(number, { filter, cursor: toPosition(block, index), notifiedCount });
}

/** The history has alpha 1-5 in blocks 2 and 4, and alpha 8 in block 6; all of beta is in blocks 2 and 4. */
function testCursors(store: () => Store): void {
  it("moves the cursors of thousands of subscriptions back", async () => {
    const given = Array.from({ length: 2_001 }, (_, index) => made(index, parseTopicFilter("alpha"), [6, 0, 6]));
    await store().applyBlocks(group, history);
    await Promise.all(given.map((subscription) => store().insertSubscription(subscription, 0)));
    await store().rollBack(group, ref(2));
    const found = await store().listSubscriptions();
    expect(found.map(({ cursor, notifiedCount }) => `${cursor} ${notifiedCount}`)).toEqual(
      given.map(() => `${endOfBlock(2)} 3`),
    );
  });
  it("moves cursors back to the end of the block, and subtracts the acknowledged events after the block", async () => {
    const name = parseTopicFilter("alpha");
    const all = parseTopicFilter("#");
    const given = [
      made(1, name, [6, 0, 6]),
      made(2, name, [4, 1, 4]),
      made(3, all, [4, 1, 7]),
      made(4, all, [6, 0, 2]),
      made(5, all, [2, 1, 2]),
      { ...made(6, all, [6, 0, 9]), groupId: otherGroup },
    ];
    await store().applyBlocks(group, history);
    for (const subscription of given) await store().insertSubscription(subscription, 0);
    await store().rollBack(group, ref(2));
    const found = await store().listSubscriptions();
    const end = endOfBlock(2);
    expect(found.map(({ cursor, notifiedCount }) => [cursor, notifiedCount])).toEqual([
      [end, 3],
      [end, 3],
      [end, 5],
      [end, 0],
      [toPosition(2, 1), 2],
      [toPosition(6, 0), 9],
    ]);
    expect(found.map(({ delivery, state, notifiedAt }) => ({ delivery, state, notifiedAt }))).toEqual(
      given.map(({ delivery, state, notifiedAt }) => ({ delivery, state, notifiedAt })),
    );
    await store().saveProgress([
      {
        id: given[0]?.id ?? found[0]?.id ?? subscriptionOf(1).id,
        epoch: 0,
        cursor: toPosition(3, 0),
        notifiedCount: 4,
        notifiedAt: 1,
        failedAttempts: 0,
        failedMs: 0,
        failingSince: 0,
        retryAt: 0,
      },
    ]);
    expect(await store().findSubscription(subscriptionOf(1).id)).toMatchObject({
      cursor: toPosition(3, 0),
      notifiedCount: 4,
    });
  });

  it("ends failures of events after the block, but no wait that a receiver asked for", async () => {
    const all = parseTopicFilter("#");
    const end = endOfBlock(2);
    const given = [
      made(1, all, [4, 1, 7]),
      subscriptionOf(2, { filter: all, cursor: end }),
      made(3, all, [2, 0, 1]),
      { ...made(4, all, [4, 1, 7]), groupId: otherGroup },
    ];
    await store().applyBlocks(group, history);
    for (const subscription of given) await store().insertSubscription(subscription, 0);
    await store().rollBack(group, ref(2));
    const { failedAttempts, failedMs, failingSince, retryAt } = subscriptionOf(1);
    const kept = { failedAttempts, failedMs, failingSince, retryAt };
    const ended = { ...nothingFailed, retryAt };
    const found = await store().listSubscriptions();
    expect(found).toMatchObject([
      { cursor: end, ...ended },
      { cursor: end, ...ended },
      { cursor: toPosition(2, 0), ...kept },
      { cursor: toPosition(4, 1), ...kept },
    ]);
  });
}
