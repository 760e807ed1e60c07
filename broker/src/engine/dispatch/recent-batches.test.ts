import { expect, it } from "vitest";
import type { EventBatch } from "../../domain/event.ts";
import { defaultGroupId } from "../../domain/group-id.ts";
import { endOfBlock, positionZero } from "../../domain/position.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { TimeSlices } from "../../lib/time-slices.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import type { BatchRange } from "../../ports/store.ts";
import { IndexProgress } from "../index-progress.ts";
import { defaultEngineLimits } from "../limits.ts";
import { batchOfOne } from "../testing/batch-of-one.ts";
import { type Page, type Place, RecentBatches } from "./recent-batches.ts";

const { signal } = new AbortController();
const topic = parseTopicName("a");
const blocks = 100;
const contentBytes = 4_096;

/** An index with one event in each block, which records the reads. */
class Index {
  readonly progress = new IndexProgress();
  readonly reads: BatchRange[] = [];
  readonly recent: RecentBatches;

  constructor(recentBytesMax = defaultEngineLimits.recentBytesMax) {
    this.progress.advanceTo(blocks);
    this.recent = new RecentBatches({
      store: { readBatches: async (_, range) => this.#read(range) },
      slices: new TimeSlices(new VirtualClock()),
      limits: { ...defaultEngineLimits, readBatchesMax: 10, recentBytesMax },
    });
  }

  placeAfter(blockNumber: number): Place {
    const after = blockNumber === 0 ? positionZero : endOfBlock(blockNumber);
    const { progress } = this;
    return { groupId: defaultGroupId, progress, version: progress.version, topic, after, upTo: endOfBlock(blocks) };
  }

  read(blockNumber: number): Promise<Page | undefined> {
    return this.recent.read(this.placeAfter(blockNumber), signal);
  }

  has(blockNumber: number): boolean {
    return this.recent.find(this.placeAfter(blockNumber)) !== undefined;
  }

  #read(range: BatchRange): readonly EventBatch[] {
    this.reads.push(range);
    const numbers = Array.from({ length: blocks }, (_, index) => index + 1);
    return numbers
      .map(batchOf)
      .filter(({ firstPosition }) => firstPosition > range.after && firstPosition <= range.upTo)
      .slice(0, range.batchesMax);
  }
}

function batchOf(blockNumber: number): EventBatch {
  return batchOfOne({ topic, blockNumber, sequence: blockNumber, contentBytes });
}

it("serves every place within a page from memory, and reads the next page from the store", async () => {
  const index = new Index();
  const page = await index.read(0);
  expect(page?.batches.map(({ blockNumber }) => blockNumber)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(await Promise.all([index.read(3), index.read(9)])).toEqual([page, page]);
  expect(index.reads).toHaveLength(1);
  expect((await index.read(10))?.batches[0]?.blockNumber).toBe(11);
  expect(index.reads).toHaveLength(2);
});

it("reads once for concurrent calls at the same place", async () => {
  const index = new Index();
  const pages = await Promise.all(Array.from({ length: 50 }, () => index.read(20)));
  expect(new Set(pages).size).toBe(1);
  expect(index.reads).toHaveLength(1);
});

it("keeps at most recentBytesMax, and drops the least recently used page", async () => {
  const pageBytes = 10 * (contentBytes + 600);
  const index = new Index(3 * pageBytes);
  for (const blockNumber of [0, 10, 20]) await index.read(blockNumber);
  expect(index.has(0)).toBe(true);
  await index.read(30);
  expect([0, 10, 20, 30].map((blockNumber) => index.has(blockNumber))).toEqual([true, false, true, true]);
});

it("returns no page that was read before or during a rollback", async () => {
  const index = new Index();
  await index.read(0);
  const reading = index.read(50);
  index.progress.rollBackTo(4);
  expect(await reading).toBeUndefined();
  expect([index.has(0), index.has(50)]).toEqual([false, false]);
});

it("reads nothing for a place that was determined before a rollback", async () => {
  const index = new Index();
  const place = index.placeAfter(5);
  index.progress.rollBackTo(5);
  index.progress.advanceTo(6);
  expect(await index.recent.read(place, signal)).toBeUndefined();
  expect(index.reads).toEqual([]);
});
