import { encodeEvents } from "@stele/wire";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { Event, EventBatch } from "../../domain/event.ts";
import { defaultGroupId } from "../../domain/group-id.ts";
import { type Position, positionZero, toPosition } from "../../domain/position.ts";
import type { Topic } from "../../domain/topic.ts";
import { toInterest } from "../../domain/interest.ts";
import { parseTopicFilter, matchesFilter } from "../../domain/topic-filter.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { topicAddress } from "../../ledger/memory/memory-chain.ts";
import type { IndexedBlock } from "../../ports/store.ts";
import { TimeSlices } from "../../lib/time-slices.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { IndexProgress } from "../index-progress.ts";
import { defaultEngineLimits } from "../limits.ts";
import { Feed } from "./feed.ts";
import { FeedHub } from "./feed-hub.ts";
import { RecentBatches } from "./recent-batches.ts";

const names = ["a/1", "a/2", "b"].map(parseTopicName);
const payload = { content: new Uint8Array([1]), extensions: [] };

type Batches = readonly (readonly [topic: number, count: number])[];
/**
 * One of three steps: the hub offers the first `offered` batches of a block before the feed falls behind (all if undefined); the consumer takes `take`
 * events and may restart; or another reader uses up the memory for held batches.
 */
type Step =
  | { readonly batches: Batches; readonly offered: number | undefined }
  | { readonly take: number; readonly restart: boolean }
  | { readonly squeeze: true };
const batchesOfBlock = fc.array(fc.tuple(fc.nat({ max: 2 }), fc.integer({ min: 1, max: 5 })), { maxLength: 4 });
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({ batches: batchesOfBlock, offered: fc.constant(undefined) }),
    fc.record({ batches: batchesOfBlock, offered: fc.nat({ max: 3 }) }),
    fc.record({ take: fc.integer({ min: 1, max: 12 }), restart: fc.boolean() }),
    fc.record({ squeeze: fc.constant(true as const) }),
  ),
  { maxLength: 30 },
);

/** An index that is written as the follower writes it: commit a block, offer its batches, then advance the progress. */
class Index {
  readonly store = createMemoryStore();
  readonly progress = new IndexProgress();
  readonly published: string[] = [];
  readonly #sequences = new Map<number, number>();

  async seal(number: number, step: { readonly batches: Batches }): Promise<readonly EventBatch[]> {
    let index = 0;
    const batches = step.batches.map(([topicIndex, count]) => {
      const firstSequence = (this.#sequences.get(topicIndex) ?? 0) + 1;
      this.#sequences.set(topicIndex, firstSequence + count - 1);
      const topic = names[topicIndex] ?? parseTopicName("b");
      for (let place = 0; place < count; place += 1) this.published.push(`${topic} ${firstSequence + place}`);
      const events = encodeEvents(Array.from({ length: count }, () => payload));
      const batch = {
        topic,
        firstSequence,
        firstPosition: toPosition(number, index),
        transactionHash: "0x" as const,
        publisher: "0x" as const,
        logIndex: index,
        count,
        blockNumber: number,
        events,
      };
      index += count;
      return batch;
    });
    const opened = number === 1 ? names.map(toTopic) : [];
    const block: IndexedBlock = { number, hash: `0x${number}`, opened, closed: [], batches, skippedSequences: [] };
    await this.store.applyBlocks(defaultGroupId, [block]);
    return batches;
  }
}

function toTopic(name: (typeof names)[number]): Topic {
  const address = topicAddress(name);
  return { name, address, sender: address, createdTimestamp: 0, sequence: 0, blockNumber: 0, closed: false };
}

async function takeFrom(feed: Feed, count: number): Promise<readonly Event[]> {
  const taken: Event[] = [];
  const controller = new AbortController();
  while (taken.length < count) {
    const timer = setImmediate(() => setImmediate(() => controller.abort()));
    await feed.more(controller.signal);
    clearImmediate(timer);
    const event = feed.peek();
    if (event === undefined) break;
    feed.advance();
    taken.push(event);
  }
  return taken;
}

it.each([
  { text: "a/1", others: [] },
  { text: "a/+", others: ["a/1"] },
  { text: "#", others: ["a/+", "b"] },
])(
  "a feed for $text (other filters: $others) gives every matching event once and in order, at any pace",
  async ({ text, others }) => {
    const filter = parseTopicFilter(text);
    const other = { letGo: () => {} };
    let squeezed = 0;
    await fc.assert(
      fc.asyncProperty(
        steps,
        fc.integer({ min: 1, max: 8 }),
        fc.constantFrom(0, 2_000, 1e6),
        async (history, feedEventsMax, recentBytesMax) => {
          const index = new Index();
          const { store, progress } = index;
          const limits = { ...defaultEngineLimits, feedEventsMax, recentBytesMax, readBatchesMax: 2, readBytesMax: 40 };
          const slices = new TimeSlices(new VirtualClock());
          const recent = new RecentBatches({ store, limits, slices });
          const hub = new FeedHub({ slices });
          const request = { filters: [filter, ...others.map(parseTopicFilter)], interest: toInterest(filter) };
          const createFeed = (after: Position): Feed =>
            new Feed({ ...request, recent, slices, hub, progress, groupId: defaultGroupId, after, limits });
          let feed = createFeed(positionZero);
          const fed: string[] = [];
          let number = 0;
          let cursor = positionZero;
          for (const step of [...history, { take: Number.MAX_SAFE_INTEGER, restart: false }]) {
            if ("squeeze" in step) {
              recent.held.hold(other, Number.MAX_SAFE_INTEGER);
              recent.held.hold(other, 0);
              squeezed += feed.peek() === undefined && !feed.isCaughtUp ? 1 : 0;
              continue;
            }
            if ("take" in step) {
              const taken = await takeFrom(feed, step.take);
              fed.push(...taken.map((event) => `${event.topic} ${event.sequence}`));
              cursor = taken.at(-1)?.position ?? cursor;
              if (!step.restart) continue;
              feed.close();
              feed = createFeed(cursor);
              continue;
            }
            number += 1;
            const batches = await index.seal(number, step);
            hub.offer(defaultGroupId, batches.slice(0, step.offered));
            if (step.offered !== undefined) hub.fallBehind(defaultGroupId);
            index.progress.advanceTo(number);
          }
          const expected = index.published.filter((event) =>
            matchesFilter(filter, parseTopicName(event.split(" ")[0] ?? "")),
          );
          expect(fed).toEqual(expected);
        },
      ),
      { numRuns: 200 },
    );
    expect(squeezed).toBeGreaterThan(100);
  },
);
