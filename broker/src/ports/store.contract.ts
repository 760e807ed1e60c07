import { topicDigest } from "@stele/wire";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EventBatch } from "../domain/event.ts";
import { nonePending } from "../domain/pending-events.ts";
import { blockNumberMax, endOfBlock, type Position, positionZero, toPosition } from "../domain/position.ts";
import type { Topic } from "../domain/topic.ts";
import { parseTopicName, type TopicName } from "../domain/topic-name.ts";
import type { BatchRange, IndexedBlock, Store, PositionRange } from "./store.ts";
import { testNameRanges } from "./store-name-ranges.contract.ts";
import { testOperated } from "./store-operated.contract.ts";
import { testTopicSizes } from "./store-topic-sizes.contract.ts";
import { testRetained } from "./store-retained.contract.ts";
import { testRollBack } from "./store-rollback.contract.ts";
import { testSkippedEntries } from "./store-skipped-entries.contract.ts";
import { testProgress, testSubscriptions } from "./store-subscriptions.contract.ts";
import {
  alpha,
  batchOf,
  beta,
  blockOf,
  everyByte,
  firstAfter,
  group,
  hashOf,
  history,
  otherGroup,
  topicOf,
} from "./store-examples.contract.ts";

const everything: BatchRange = {
  after: positionZero,
  upTo: endOfBlock(blockNumberMax),
  topic: undefined,
  batchesMax: 1000,
  bytesMax: 1 << 30,
};

const places = (batches: readonly EventBatch[]): readonly string[] =>
  batches.map((batch) => `${batch.topic} ${batch.firstSequence}`);

/** The guarantees of the Store port. `create` returns an empty store that is not started. */
export function testStore(name: string, create: () => Promise<Store>): void {
  describe(`${name} keeps the store's contract`, () => {
    let store: Store;
    beforeEach(async () => {
      store = await create();
      await store.start();
    });
    afterEach(async () => store.stop());
    describe("blocks", () => testBlocks(() => store));
    describe("topics", () => testTopics(() => store));
    describe("topics by ranges of names", () => testNameRanges(() => store));
    describe("batches", () => testBatches(() => store));
    describe("counts", () => testCounts(() => store));
    describe("subscriptions", () => testSubscriptions(() => store));
    describe("searches and changes of operators", () => testOperated(() => store));
    describe("progress", () => testProgress(() => store));
    describe("rolling back", () => testRollBack(() => store));
    describe("retained events", () => testRetained(() => store));
    describe("sizes of topics", () => testTopicSizes(() => store));
    describe("skipped entries", () => testSkippedEntries(() => store));
  });
}

function testBlocks(store: () => Store): void {
  it("an empty store has no head", async () => {
    expect(await store().findHead(group)).toBeUndefined();
  });
  it("the head is the last applied block of its group", async () => {
    await store().applyBlocks(group, history);
    expect(await store().findHead(group)).toEqual({ blockNumber: 6, hash: hashOf(6), generation: 0 });
    expect(await store().findHead(otherGroup)).toBeUndefined();
    expect(await store().findTopic(otherGroup, alpha)).toBeUndefined();
    await store().applyBlocks(otherGroup, [blockOf(0)]);
    expect(await store().findHead(otherGroup)).toEqual({ blockNumber: 0, hash: hashOf(0), generation: 0 });
  });
  it("refuses blocks that do not follow the head", async () => {
    const after = { number: 1, hash: hashOf(1) };
    await store().applyBlocks(group, [blockOf(1)]);
    await store().applyBlocks(group, [blockOf(2)], { isFinal: false, after });
    await expect(store().applyBlocks(group, [blockOf(3)], { isFinal: false, after })).rejects.toThrow(
      "the head is not",
    );
    expect((await store().findHead(group))?.blockNumber).toBe(2);
  });
  it("applying no blocks changes nothing", async () => {
    await store().applyBlocks(group, []);
    expect(await store().findHead(group)).toBeUndefined();
  });
  it("blocks applied one by one give the same index as in one call", async () => {
    for (const block of history) await store().applyBlocks(group, [block]);
    await store().applyBlocks(otherGroup, history);
    expect(await store().listTopics(group, { offset: 0, limit: 9 })).toEqual(
      await store().listTopics(otherGroup, { offset: 0, limit: 9 }),
    );
    expect(await store().readBatches(group, everything)).toEqual(await store().readBatches(otherGroup, everything));
  });
  const gamma = topicOf(parseTopicName("gamma"), 3);
  const opensGamma = blockOf(7, { opened: [gamma] });
  it.each<[string, readonly IndexedBlock[]]>([
    ["the head's block again", [blockOf(6)]],
    ["a block before the head", [blockOf(3)]],
    ["blocks out of order", [blockOf(9), blockOf(8)]],
    ["the same block twice", [blockOf(8), blockOf(8)]],
    ["a topic opened twice", [opensGamma, blockOf(8, { opened: [gamma] })]],
    ["an unknown topic closed", [opensGamma, blockOf(8, { closed: [{ name: parseTopicName("none"), closed: true }] })]],
    ["a batch of an unknown topic", [opensGamma, batchIn(8, { topic: "none", sequence: 1 })]],
    ["a sequence with a gap", [opensGamma, batchIn(8, { topic: "alpha", sequence: 10 })]],
    ["a sequence that was taken", [opensGamma, batchIn(8, { topic: "alpha", sequence: 8 })]],
    ["a skipped gap", [opensGamma, blockOf(8, { skippedSequences: [{ name: alpha, firstSequence: 10, count: 1 }] })]],
  ])("refuses %s and stores nothing", async (_, blocks) => {
    await store().applyBlocks(group, history);
    await expect(store().applyBlocks(group, blocks)).rejects.toThrow(/./);
    expect(await store().findHead(group)).toEqual({ blockNumber: 6, hash: hashOf(6), generation: 0 });
    expect(await store().findTopic(group, gamma.name)).toBeUndefined();
    expect((await store().listTopics(group, { offset: 0, limit: 9 })).total).toBe(2);
    expect(await store().findTopic(group, alpha)).toMatchObject({ sequence: 8, blockNumber: 6 });
    expect(places(await store().readBatches(group, { ...everything, after: endOfBlock(6) }))).toEqual([]);
    await store().applyBlocks(group, [opensGamma]);
    expect(await store().findTopic(group, gamma.name)).toEqual(gamma);
  });
  it("applies concurrent calls in the order of the calls", async () => {
    await Promise.all(history.map((block) => store().applyBlocks(group, [block])));
    expect(await store().findTopic(group, alpha)).toMatchObject({ sequence: 8, blockNumber: 6 });
  });
}

function batchIn(block: number, place: { readonly topic: string; readonly sequence: number }): IndexedBlock {
  const batch = batchOf(parseTopicName(place.topic), { block, sequence: place.sequence, count: 1 });
  return blockOf(block, { batches: [batch] });
}

function testTopics(store: () => Store): void {
  it("a topic advances with its events and with skipped sequences", async () => {
    await store().applyBlocks(group, history.slice(0, 1));
    expect(await store().findTopic(group, alpha)).toEqual(topicOf(alpha, 1));
    await store().applyBlocks(group, history.slice(1, 3));
    expect(await store().findTopic(group, alpha)).toEqual({ ...topicOf(alpha, 1), sequence: 5, blockNumber: 4 });
    await store().applyBlocks(group, history.slice(3, 4));
    expect(await store().findTopic(group, alpha)).toEqual({ ...topicOf(alpha, 1), sequence: 7, blockNumber: 5 });
  });
  it("opens a topic, stores its events and closes it in one block", async () => {
    const batches = [batchOf(alpha, { block: 1, sequence: 1, count: 2 })];
    await store().applyBlocks(group, [
      blockOf(1, { opened: [topicOf(alpha)], batches, closed: [{ name: alpha, closed: true }] }),
    ]);
    const found = { ...topicOf(alpha), sequence: 2, blockNumber: 1, closed: true };
    expect(await store().findTopic(group, alpha)).toEqual(found);
    expect(await store().findTopicsByAddress(group, [found.address])).toEqual([found]);
  });
  it("closings and reopenings of a topic in one block apply in order, and the topic keeps its sequence", async () => {
    const closed = [true, false, true].map((closed) => ({ name: alpha, closed }));
    await store().applyBlocks(group, [...history, blockOf(7, { closed })]);
    expect(await store().findTopic(group, alpha)).toMatchObject({ closed: true, sequence: 8 });
    await store().applyBlocks(group, [blockOf(8, { closed: [{ name: alpha, closed: false }] })]);
    expect(await store().findTopic(group, alpha)).toMatchObject({ closed: false, sequence: 8 });
  });
  it("distinguishes names that differ in case, spaces, quotes, percent, underscore or character 128", async () => {
    const names = [
      "a",
      "A",
      " a",
      "a ",
      "a'b",
      'a"b',
      "a%",
      "a_",
      "a?",
      "a\\",
      "/",
      "a//b/\u0080",
      "\u0080",
      "0x1",
      "1",
      "01",
    ];
    const opened = names.map((name, index) => topicOf(parseTopicName(name === "/" ? "/x" : name), index + 1));
    await store().applyBlocks(group, [blockOf(1, { opened })]);
    for (const topic of opened) {
      expect(await store().findTopic(group, topic.name)).toEqual(topic);
      expect(await store().findTopicsByAddress(group, [topic.address])).toEqual([topic]);
      expect(await store().findTopicsByDigest(group, topicDigest(topic.name))).toEqual([topic]);
    }
    expect(await store().findTopic(group, parseTopicName("a%%"))).toBeUndefined();
    expect(await store().findTopicsByAddress(group, [topicOf(alpha, 99).address])).toEqual([]);
    expect((await store().listTopics(group, { offset: 0, limit: 99 })).topics).toEqual(opened);
  });
  it("finds many topics by name and by address, and omits missing ones", async () => {
    const names = Array.from({ length: 1500 }, (_, index) => parseTopicName(`many/${index}`));
    const opened = names.map((name, index) => topicOf(name, index + 1));
    await store().applyBlocks(group, [blockOf(1, { opened })]);
    // Writes one of them again, since a store may cache its latest write.
    await store().applyBlocks(group, [blockOf(2, { closed: [{ name: parseTopicName("many/7"), closed: true }] })]);
    const expected = opened.map((topic, index) => (index === 7 ? { ...topic, closed: true } : topic));
    const byName = await store().findTopics(group, [parseTopicName("other"), ...names]);
    const addresses = [topicOf(alpha, 9999).address, ...opened.map(({ address }) => address)];
    const byAddress = await store().findTopicsByAddress(group, addresses);
    const byOrdinal = (topics: readonly Topic[]) =>
      topics.toSorted((one, other) => names.indexOf(one.name) - names.indexOf(other.name));
    expect(byOrdinal(byName)).toEqual(expected);
    expect(byOrdinal(byAddress)).toEqual(expected);
    expect(await store().findTopics(otherGroup, names)).toEqual([]);
    expect(await store().findTopicsByAddress(group, [])).toEqual([]);
  });
  it("finds both topics whose names have the same digest", async () => {
    const opened = ["topic/50622", "topic/83634"].map((name, index) => topicOf(parseTopicName(name), index + 1));
    await store().applyBlocks(group, [blockOf(1, { opened })]);
    expect(await store().findTopicsByDigest(group, "0ab453c0")).toEqual(opened);
    expect(await store().findTopicsByDigest(group, "0ab453c1")).toEqual([]);
    expect(await store().findTopicsByDigest(otherGroup, "0ab453c0")).toEqual([]);
  });
  it("counts the topics whose names begin with a prefix, compared by bytes, except for given names", async () => {
    const names = ["acme/a", "acme/b/c", "acme/y", "acme", "acme0", "acme-x/a", "ACME/a", "acme/z"].map(parseTopicName);
    await store().applyBlocks(group, [blockOf(1, { opened: names.map((name, i) => topicOf(name, i + 1)) })]);
    expect(await store().countTopics(group, "acme/", [])).toBe(4);
    expect(await store().countTopics(group, "acme/", ["acme/a", "acme/unknown", "acme0"])).toBe(3);
    expect(await store().countTopics(otherGroup, "acme/", [])).toBe(0);
  });
  it("pages list topics in the order of opening, and contain the total", async () => {
    const names = ["e", "b", "d", "a", "c"].map((name) => parseTopicName(name));
    await store().applyBlocks(group, [
      blockOf(1, { opened: names.slice(0, 2).map((name, i) => topicOf(name, i + 1)) }),
    ]);
    await store().applyBlocks(group, [blockOf(2, { opened: names.slice(2).map((name, i) => topicOf(name, i + 3)) })]);
    const page = async (offset: number, limit: number): Promise<string> => {
      const { total, topics } = await store().listTopics(group, { offset, limit });
      return `${total} ${topics.map((topic) => topic.name).join("")}`;
    };
    expect(await page(0, 2)).toBe("5 eb");
    expect(await page(2, 2)).toBe("5 da");
    expect(await page(4, 2)).toBe("5 c");
    expect(await page(5, 2)).toBe("5 ");
    expect(await page(2 ** 40, 99)).toBe("5 ");
    expect(await page(Number.MAX_SAFE_INTEGER, 99)).toBe("5 ");
    expect(await page(0, 0)).toBe("5 ");
    expect(await store().listTopics(otherGroup, { offset: 0, limit: 9 })).toEqual({ total: 0, topics: [] });
  });
}

function testBatches(store: () => Store): void {
  it("finds an event in its batch, byte for byte", async () => {
    await store().applyBlocks(group, history);
    const find = async (topic: TopicName, sequence: number): Promise<string | undefined> => {
      const batch = await store().findBatch(group, { topic, sequence });
      return batch && places([batch])[0];
    };
    expect(await Promise.all([0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((sequence) => find(alpha, sequence)))).toEqual(
      [0, 1, 1, 1, 4, 4, 0, 0, 8, 0].map((first) => (first === 0 ? undefined : `alpha ${first}`)),
    );
    expect(await find(beta, 3)).toBe("beta 3");
    expect(await find(parseTopicName("none"), 1)).toBeUndefined();
    expect(await store().findBatch(otherGroup, { topic: alpha, sequence: 1 })).toBeUndefined();
    const batch = await store().findBatch(group, { topic: alpha, sequence: 5 });
    expect(batch).toEqual(history[2]?.batches[1]);
    expect(batch?.events).toEqual(everyByte);
  });
  it("returns empty and large batches whole", async () => {
    const large = Uint8Array.from({ length: 1 << 20 }, (_, index) => (index * 31) % 256);
    const batches = [
      batchOf(alpha, { block: 1, sequence: 1, count: 1, events: new Uint8Array() }),
      batchOf(alpha, { block: 1, index: 1, sequence: 2, count: 1000, events: large.subarray(1) }),
    ];
    await store().applyBlocks(group, [blockOf(1, { opened: [topicOf(alpha)], batches })]);
    expect((await store().findBatch(group, { topic: alpha, sequence: 1 }))?.events).toEqual(new Uint8Array());
    const found = (await store().findBatch(group, { topic: alpha, sequence: 1001 }))?.events ?? new Uint8Array();
    expect(Buffer.compare(found, large.subarray(1))).toBe(0);
  });
  const all = ["alpha 1", "beta 1", "beta 3", "alpha 4", "alpha 8"];
  it.each<[string, Partial<BatchRange>, readonly string[]]>([
    ["everything, ascending", {}, all],
    ["one topic", { topic: alpha }, ["alpha 1", "alpha 4", "alpha 8"]],
    ["nothing of an unknown topic", { topic: parseTopicName("none") }, []],
    ["a batch that has `after` inside", { after: toPosition(2, 1) }, all],
    ["no batch whose last event is at `after`", { after: toPosition(2, 2) }, all.slice(1)],
    ["all of a block whose first event follows `after`", { after: endOfBlock(1) }, all],
    ["nothing of a block that ends at `after`", { after: endOfBlock(2) }, all.slice(2)],
    ["a batch that has `upTo` inside", { upTo: toPosition(4, 1) }, all.slice(0, 4)],
    ["a batch whose first event is at `upTo`", { upTo: toPosition(4, 0) }, all.slice(0, 3)],
    ["no batch whose first event comes after `upTo`", { upTo: toPosition(2, 2) }, all.slice(0, 1)],
    ["one event", { after: toPosition(2, 3), upTo: toPosition(2, 4) }, ["beta 1"]],
    ["nothing from a block without batches", { after: endOfBlock(4), upTo: endOfBlock(5) }, []],
    ["nothing from an empty range inside a batch", { after: toPosition(2, 1), upTo: toPosition(2, 1) }, []],
    ["nothing from a reversed range", { after: toPosition(2, 2), upTo: toPosition(2, 0) }, []],
    ["nothing after the last event", { after: toPosition(6, 0) }, []],
    ["at most `batchesMax` batches", { batchesMax: 2 }, all.slice(0, 2)],
    ["at most `batchesMax` batches of one topic", { batchesMax: 2, topic: alpha }, ["alpha 1", "alpha 4"]],
    ["up to the batch that exceeds `bytesMax`", { bytesMax: 257 }, all.slice(0, 2)],
    ["up to the batch that reaches `bytesMax` exactly", { bytesMax: 512 }, all.slice(0, 2)],
    ["at least one batch, even above `bytesMax`", { bytesMax: 1 }, all.slice(0, 1)],
    ["one topic up to `bytesMax`", { bytesMax: 300, topic: alpha, after: toPosition(2, 1) }, ["alpha 1", "alpha 4"]],
  ])("reads %s", async (_, range, expected) => {
    await store().applyBlocks(group, history);
    expect(places(await store().readBatches(group, { ...everything, ...range }))).toEqual(expected);
  });
  it("reads nothing of another group", async () => {
    await store().applyBlocks(group, history);
    expect(await store().readBatches(otherGroup, everything)).toEqual([]);
  });
  it("returns the highest positions and sequences exactly", async () => {
    const block = blockNumberMax;
    const skippedSequences = [{ name: alpha, firstSequence: 1, count: Number.MAX_SAFE_INTEGER - 1 }];
    const batch = batchOf(alpha, { block, index: 2 ** 20 - 1, sequence: Number.MAX_SAFE_INTEGER, count: 1 });
    await store().applyBlocks(group, [
      blockOf(1, { opened: [topicOf(alpha)], skippedSequences }),
      blockOf(block, { batches: [batch] }),
    ]);
    expect(await store().findBatch(group, { topic: alpha, sequence: Number.MAX_SAFE_INTEGER })).toEqual(batch);
    expect(await store().readBatches(group, { ...everything, after: (endOfBlock(block) - 1) as Position })).toEqual([
      batch,
    ]);
    expect(await store().findTopic(group, alpha)).toMatchObject({
      sequence: Number.MAX_SAFE_INTEGER,
      blockNumber: block,
    });
  });
}

function testCounts(store: () => Store): void {
  it.each<[string, Position, number]>([
    ["position zero, without skipped sequences", positionZero, 6],
    ["the block before the first event", endOfBlock(1), 6],
    ["the first event", toPosition(2, 0), 5],
    ["an event inside a batch", toPosition(2, 1), 4],
    ["the last event of a batch", toPosition(2, 2), 3],
    ["a block between batches", endOfBlock(3), 3],
    ["another topic's event in the block", toPosition(4, 0), 3],
    ["skipped sequences", endOfBlock(5), 1],
    ["the newest event", toPosition(6, 0), 0],
    ["the highest position", endOfBlock(blockNumberMax), 0],
  ])("counts the events after %s", async (_, after, expected) => {
    await store().applyBlocks(group, history);
    expect(await store().countEventsAfter(group, alpha, after)).toBe(expected);
  });
  it("countEventsAfterEach returns the count and the first event for each place, in order", async () => {
    await store().applyBlocks(group, history);
    const afters = [positionZero, endOfBlock(1), toPosition(2, 1), endOfBlock(3), toPosition(6, 0), toPosition(2, 1)];
    const topics = [parseTopicName("gamma"), alpha, beta];
    const places = afters.flatMap((after) => topics.map((topic) => ({ topic, after })));
    const each = await Promise.all(places.map(({ topic, after }) => store().countEventsAfter(group, topic, after)));
    expect(new Set(each).size).toBeGreaterThan(4);
    const expected = places.map(({ topic, after }, at) => ({ count: each[at], first: firstAfter(topic, after) }));
    expect(await store().countEventsAfterEach(group, places)).toEqual(expected);
    expect(await store().countEventsAfterEach(otherGroup, places)).toEqual(places.map(() => nonePending));
    expect(await store().countEventsAfterEach(group, [])).toEqual([]);
  });
  it.each<[string, Omit<PositionRange, "batchesMax">, [number, number]]>([
    ["everything", { after: positionZero, upTo: endOfBlock(6) }, [6, 3]],
    ["nothing", { after: endOfBlock(4), upTo: endOfBlock(5) }, [0, 0]],
    ["from inside a batch", { after: toPosition(2, 1), upTo: endOfBlock(2) }, [1, 2]],
    ["up to inside a batch", { after: endOfBlock(1), upTo: toPosition(2, 3) }, [3, 1]],
    ["inside one batch", { after: toPosition(2, 0), upTo: toPosition(2, 1) }, [1, 0]],
    ["beyond the head", { after: endOfBlock(4), upTo: endOfBlock(blockNumberMax) }, [1, 0]],
    ["that ends where it begins", { after: endOfBlock(4), upTo: endOfBlock(4) }, [0, 0]],
  ])("counts the events of a range by topic: %s", async (_, bounds, [alphas, betas]) => {
    await store().applyBlocks(group, history);
    const { counts, upTo } = await store().countRange(group, { ...bounds, batchesMax: 10 });
    const found = new Map(counts.map(({ topic, count }) => [topic, count]));
    expect([found.get(alpha) ?? 0, found.get(beta) ?? 0]).toEqual([alphas, betas]);
    expect(upTo).toBe(bounds.upTo);
  });
  it("stops counting a range at the batch limit, and returns how far it came", async () => {
    await store().applyBlocks(group, history);
    const whole = { after: positionZero, upTo: endOfBlock(6) };
    const first = await store().countRange(group, { ...whole, batchesMax: 2 });
    expect(first.upTo).toBe(toPosition(2, 4));
    expect(new Set(first.counts.map(({ count }) => count))).toEqual(new Set([2, 3]));
    const second = await store().countRange(group, { ...whole, after: first.upTo, batchesMax: 2 });
    const found = [alpha, beta].map((topic) => ({ topic, first: firstAfter(topic, first.upTo) }));
    const counts = found.map(({ topic, ...rest }) => ({ topic, count: topic === alpha ? 2 : 1, ...rest }));
    expect(second).toEqual({ counts: expect.arrayContaining(counts), upTo: toPosition(4, 2) });
    const third = await store().countRange(group, { ...whole, after: second.upTo, batchesMax: 2 });
    expect(third).toEqual({ counts: [{ topic: alpha, count: 1, first: toPosition(6, 0) }], upTo: endOfBlock(6) });
  });
  it("counts nothing for an unknown group", async () => {
    const range = { after: positionZero, upTo: endOfBlock(6), batchesMax: 10 };
    expect(await store().countRange(otherGroup, range)).toEqual({ counts: [], upTo: range.upTo });
  });
  it("returns all events of a topic, and nothing for its skipped sequences", async () => {
    await store().applyBlocks(group, history);
    const batches = await store().readBatches(group, { ...everything, topic: alpha });
    expect(batches.reduce((sum, batch) => sum + batch.count, 0)).toBe(6);
  });
  it("counts no events of an unknown topic or group, or of a topic that only skipped sequences", async () => {
    await store().applyBlocks(group, [
      blockOf(1, { opened: [topicOf(alpha)], skippedSequences: [{ name: alpha, firstSequence: 1, count: 5 }] }),
    ]);
    expect(await store().countEventsAfter(group, alpha, positionZero)).toBe(0);
    expect(await store().countEventsAfter(group, beta, positionZero)).toBe(0);
    expect(await store().countEventsAfter(otherGroup, alpha, positionZero)).toBe(0);
  });
  it("does not count sequences that were skipped before, between or after the batches of a block", async () => {
    const skippedSequences = [5, 1, 3].map((firstSequence) => ({ name: alpha, firstSequence, count: 1 }));
    const batches = [2, 4].map((sequence, index) => batchOf(alpha, { block: 1, index, sequence, count: 1 }));
    await store().applyBlocks(group, [blockOf(1, { opened: [topicOf(alpha)], skippedSequences, batches })]);
    expect(await store().findTopic(group, alpha)).toMatchObject({ sequence: 5, blockNumber: 1 });
    expect(await store().countEventsAfter(group, alpha, endOfBlock(0))).toBe(2);
    expect(await store().countEventsAfter(group, alpha, toPosition(1, 0))).toBe(1);
  });
}
