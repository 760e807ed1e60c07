import fc from "fast-check";
import { beforeEach, expect, it } from "vitest";
import { endOfBlock, type Position, positionZero, toPosition } from "../../domain/position.ts";
import { isPattern, matchesFilter, parseTopicFilter } from "../../domain/topic-filter.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { TimeSlices } from "../../lib/time-slices.ts";
import { batchOf, blockOf, group, history, otherGroup, topicOf } from "../../ports/store-examples.contract.ts";
import type { IndexedBlock, Store } from "../../ports/store.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { PendingCounts, type FilterCursor } from "./pending-counts.ts";

const slices = new TimeSlices(new VirtualClock());
let store: Store;
beforeEach(() => {
  store = createMemoryStore();
});

const filterCursor = (filter: string, cursor = positionZero, groupId = group): FilterCursor => {
  return { groupId, filter: parseTopicFilter(filter), cursor };
};

async function readAll(filterCursors: readonly FilterCursor[]): Promise<PendingCounts> {
  const counts = new PendingCounts({ store, slices });
  for (const one of filterCursors) counts.add(one);
  await counts.read();
  return counts;
}

async function countAll(filterCursors: readonly FilterCursor[]): Promise<readonly number[]> {
  const counts = await readAll(filterCursors);
  return filterCursors.map((one) => counts.get(one));
}

/** Counts the calls of the store by method. */
function countCalls(): Map<string, number> {
  const calls = new Map<string, number>();
  const note = (name: string): void => void calls.set(name, (calls.get(name) ?? 0) + 1);
  const { countEventsAfterEach: countEach, countRange } = store;
  store.countEventsAfterEach = (groupId, places) => {
    note("countEventsAfterEach");
    return countEach.call(store, groupId, places);
  };
  store.countRange = (groupId, range) => {
    note("countRange");
    return countRange.call(store, groupId, range);
  };
  return calls;
}

it("counts the waiting events of each subscription, by topic name and by pattern, in each group", async () => {
  for (const groupId of [group, otherGroup]) await store.applyBlocks(groupId, history);
  const filterCursors = [
    filterCursor("alpha"),
    filterCursor("alpha", toPosition(2, 1)),
    filterCursor("beta"),
    filterCursor("#"),
    filterCursor("#", toPosition(4, 1)),
    filterCursor("+", toPosition(4, 1)),
    filterCursor("alpha/#", toPosition(4, 1)),
    filterCursor("alpha", toPosition(4, 1), otherGroup),
    filterCursor("#", toPosition(4, 1), otherGroup),
    filterCursor("gamma"),
    filterCursor("gamma/#"),
  ];
  expect(await countAll(filterCursors)).toEqual([6, 4, 3, 9, 2, 2, 2, 2, 2, 0, 0]);
});

it("counts 0 in a group without an index", async () => {
  expect(await countAll([filterCursor("#"), filterCursor("alpha")])).toEqual([0, 0]);
});

it("calls the store once for 500 cursors in a topic, even if each one is added twice", async () => {
  await store.applyBlocks(group, history);
  const calls = countCalls();
  const places = Array.from({ length: 500 }, (_, index) => filterCursor("alpha", toPosition(1, index)));
  await countAll([...places, ...places]);
  expect(calls).toEqual(new Map([["countEventsAfterEach", 1]]));
});

it("calls the store once for 500 patterns with the same cursor", async () => {
  await store.applyBlocks(group, history);
  const calls = countCalls();
  await countAll(Array.from({ length: 500 }, (_, index) => filterCursor(`${index}/#`)));
  expect(calls).toEqual(new Map([["countRange", 1]]));
});

it("does not call the store if nothing was added", async () => {
  const calls = countCalls();
  expect(await countAll([])).toEqual([]);
  expect(calls).toEqual(new Map());
});

it("counts topic by topic instead of reading the range if there are more batches between two cursors than topics in the group", async () => {
  const calls = countCalls();
  await store.applyBlocks(group, longHistory(5_000));
  const cursors = [toPosition(4_990, 0), toPosition(2_000, 0), positionZero];
  expect(await countAll(cursors.map((cursor) => filterCursor("#", cursor)))).toEqual([10, 3_000, 5_000]);
  expect(calls).toEqual(
    new Map([
      ["countRange", 3],
      ["countEventsAfterEach", 2],
    ]),
  );
});

it("counts 0 for a cursor at or after the newest event", async () => {
  await store.applyBlocks(group, history);
  expect(await countAll([filterCursor("#", endOfBlock(99)), filterCursor("#", toPosition(6, 0))])).toEqual([0, 0]);
});

const names = ["a/1", "a/2", "b", "$c"].map(parseTopicName);
const filters = ["a/1", "b", "#", "a/#", "+", "+/+", "a/+", "$c/#"];
const batchArbitrary = fc.record({ name: fc.nat({ max: names.length - 1 }), count: fc.integer({ min: 1, max: 4 }) });
const blockArbitrary = fc.array(batchArbitrary, { maxLength: 4 });
const filterCursorArbitrary = fc.record({
  filter: fc.constantFrom(...filters),
  block: fc.nat({ max: 12 }),
  index: fc.nat({ max: 10 }),
});

it("counts the same as a scan of all events, and finds the same first event, for any history and cursors", async () => {
  const histories = fc.array(blockArbitrary, { minLength: 1, maxLength: 10 });
  await fc.assert(
    fc.asyncProperty(histories, fc.array(filterCursorArbitrary, { maxLength: 12 }), async (given, filterCursors) => {
      const { blocks, events } = toHistory(given);
      store = createMemoryStore();
      await store.applyBlocks(group, blocks);
      const asked = filterCursors.map(({ filter, block, index }) => filterCursor(filter, toPosition(block, index)));
      const expected = asked.map(({ filter, cursor }) => {
        const matching = events.filter(({ topic }) =>
          isPattern(filter) ? matchesFilter(filter, topic) : (filter as string) === topic,
        );
        const pending = matching.filter(({ position }) => position > cursor);
        return { count: pending.length, first: pending[0]?.position };
      });
      const counts = await readAll(asked);
      expect(asked.map((one) => counts.find(one))).toEqual(expected);
    }),
    { numRuns: 300 },
  );
});

/** One event of one topic in each block after the first. */
function longHistory(eventCount: number): readonly IndexedBlock[] {
  const topic = parseTopicName("a/1");
  const opened = blockOf(0, { opened: [topicOf(topic)] });
  const batchAt = (block: number) => batchOf(topic, { block, sequence: block, count: 1 });
  const blocks = Array.from({ length: eventCount }, (_, index) =>
    blockOf(index + 1, { batches: [batchAt(index + 1)] }),
  );
  return [opened, ...blocks];
}

function toHistory(given: readonly (readonly { readonly name: number; readonly count: number }[])[]) {
  const sequences = new Map<string, number>();
  const events: { readonly topic: (typeof names)[number]; readonly position: Position }[] = [];
  const blocks = given.map((batches, number) => {
    let index = 0;
    const made = batches.flatMap(({ name, count }) => {
      const topic = names[name];
      if (topic === undefined) return [];
      const sequence = (sequences.get(topic) ?? 0) + 1;
      sequences.set(topic, sequence + count - 1);
      const batch = batchOf(topic, { block: number + 1, index, sequence, count });
      for (let place = 0; place < count; place += 1)
        events.push({ topic, position: toPosition(number + 1, index + place) });
      index += count;
      return [batch];
    });
    return blockOf(number + 1, { batches: made });
  });
  return { blocks: [blockOf(0, { opened: names.map(topicOf) }), ...blocks], events };
}
