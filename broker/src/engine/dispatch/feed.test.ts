import { setImmediate as turn } from "node:timers/promises";
import { encodeEvents } from "@stele/wire";
import { beforeEach, describe, expect, it } from "vitest";
import type { Event, EventBatch } from "../../domain/event.ts";
import { defaultGroupId } from "../../domain/group-id.ts";
import { endOfBlock, positionZero, toPosition } from "../../domain/position.ts";
import { toInterest } from "../../domain/interest.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { TimeSlices } from "../../lib/time-slices.ts";
import type { Store } from "../../ports/store.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { IndexProgress } from "../index-progress.ts";
import { defaultEngineLimits, type EngineLimits } from "../limits.ts";
import { batchOfOne } from "../testing/batch-of-one.ts";
import { Feed } from "./feed.ts";
import { FeedHub } from "./feed-hub.ts";
import { RecentBatches } from "./recent-batches.ts";
import { collectGarbage } from "../../lib/testing/collect-garbage.ts";

const { signal } = new AbortController();
const batchEvents = 10;
const slices = new TimeSlices(new VirtualClock());

function soon(action: () => void): void {
  void turn().then(action);
}

function partsOf(text: string) {
  const filter = parseTopicFilter(text);
  return {
    groupId: defaultGroupId,
    filters: [filter],
    interest: toInterest(filter),
    slices,
    limits: defaultEngineLimits,
  };
}

async function nextOf(feed: Feed, until: AbortSignal = signal): Promise<Event | undefined> {
  await feed.more(until);
  const event = feed.peek();
  feed.advance();
  return event;
}

/** A live feed that is never empty: it begins one batch ahead, and each step offers a batch and takes as many events. */
class SteadyFeed {
  readonly #hub = new FeedHub({ slices });
  readonly #feed = new Feed({
    ...partsOf("a"),
    hub: this.#hub,
    after: endOfBlock(0),
    recent: recentOf(createMemoryStore()),
    progress: new IndexProgress(),
  });
  #offered = 0;

  async start(): Promise<void> {
    const first = nextOf(this.#feed);
    this.#offer();
    await first;
    this.#offer();
  }

  async step(): Promise<Event[]> {
    this.#offer();
    const taken: Event[] = [];
    for (let index = 0; index < batchEvents; index += 1) {
      const event = await nextOf(this.#feed);
      if (event !== undefined) taken.push(event);
    }
    return taken;
  }

  #offer(): void {
    const blockNumber = this.#offered + 1;
    const batch: EventBatch = {
      topic: parseTopicName("a"),
      firstSequence: this.#offered * batchEvents + 1,
      firstPosition: toPosition(blockNumber, 0),
      transactionHash: "0x",
      publisher: "0x",
      logIndex: 0,
      count: batchEvents,
      blockNumber,
      events: encodeEvents(Array.from({ length: batchEvents }, () => ({ content: new Uint8Array(1), extensions: [] }))),
    };
    this.#hub.offer(defaultGroupId, [batch]);
    this.#offered += 1;
  }
}

it("a feed that is never empty returns every event in order", async () => {
  const feed = new SteadyFeed();
  await feed.start();
  const sequences: number[] = [];
  for (let step = 0; step < 100; step += 1) sequences.push(...(await feed.step()).map((event) => event.sequence));
  expect(sequences).toEqual(Array.from({ length: 1000 }, (_, index) => index + 2));
});

it("a feed that is never empty releases the memory of passed events", async () => {
  const feed = new SteadyFeed();
  await feed.start();
  const [taken] = (await feed.step()).map((event) => new WeakRef(event));
  for (let step = 0; step < 100; step += 1) await feed.step();
  await turn();
  collectGarbage();
  expect(taken?.deref()).toBeUndefined();
});

it("a feed with a position of an unseen generation reads and passes nothing until this node reaches that generation", async () => {
  const progress = new IndexProgress();
  progress.enterGeneration(0);
  progress.advanceTo(9);
  const store = createMemoryStore();
  let generation = 1;
  const hub = new FeedHub({ slices });
  const feed = new Feed({
    ...partsOf("#"),
    hub,
    after: endOfBlock(2),
    recent: recentOf(store),
    progress,
    findGeneration: async () => generation,
  });
  const next = nextOf(feed);
  await turn();
  hub.offer(defaultGroupId, [batchOf(8)]);
  await turn();
  expect({ position: feed.position, isCaughtUp: feed.isCaughtUp, event: feed.peek() }).toEqual({
    position: endOfBlock(2),
    isCaughtUp: false,
    event: undefined,
  });
  progress.rollBackTo(-1);
  progress.enterGeneration(1);
  hub.fallBehind(defaultGroupId);
  progress.advanceTo(3);
  await turn();
  expect(feed.position).toBe(endOfBlock(3));
  generation = 2;
  hub.offer(defaultGroupId, [batchOf(4)]);
  expect((await next)?.blockNumber).toBe(4);
});

describe("a feed whose position may belong to another generation", () => {
  let generation: number;
  let looks: (() => void)[];
  let progress: IndexProgress;
  let hub: FeedHub;
  let feed: Feed;
  let next: Promise<Event | undefined>;

  beforeEach(async () => {
    generation = 3;
    looks = [];
    progress = new IndexProgress();
    progress.enterGeneration(3);
    progress.advanceTo(9);
    hub = new FeedHub({ slices });
    feed = new Feed({
      ...partsOf("#"),
      hub,
      after: endOfBlock(2),
      recent: recentOf(createMemoryStore()),
      progress,
      findGeneration: () => {
        const found = generation;
        return new Promise((resolve) => void looks.push(() => resolve(found)));
      },
    });
  });

  /** Answers the feed's newest read of the generation. */
  async function answer(): Promise<void> {
    looks.at(-1)?.();
    await turn();
  }

  it.each([2, 4])(
    "waits while the store has generation %i, and reads the generation again only when it is woken",
    async (other) => {
      generation = other;
      next = nextOf(feed);
      for (let count = 0; count < 5; count += 1) await answer();
      expect(looks).toHaveLength(1);
      progress.rollBackTo(-1);
      progress.enterGeneration(other);
      progress.advanceTo(3);
      hub.fallBehind(defaultGroupId);
      await turn();
      await answer();
      expect({ looks: looks.length, position: feed.position }).toEqual({ looks: 2, position: endOfBlock(3) });
      hub.offer(defaultGroupId, [batchOf(4)]);
      expect((await next)?.blockNumber).toBe(4);
    },
  );

  it("reads the generation again if this node's generation changed during the read", async () => {
    next = nextOf(feed);
    progress.enterGeneration(4);
    hub.fallBehind(defaultGroupId);
    generation = 4;
    await answer();
    await answer();
    expect({ looks: looks.length, position: feed.position }).toEqual({ looks: 2, position: endOfBlock(9) });
    hub.offer(defaultGroupId, [batchOf(10)]);
    expect((await next)?.blockNumber).toBe(10);
  });
});

it("feeds that are behind have at most feedReadsMax reads in progress, and take turns", async () => {
  const progress = new IndexProgress();
  progress.advanceTo(3);
  const store = createMemoryStore();
  const under: (() => void)[] = [];
  store.readBatches = async () => {
    await new Promise<void>((resolve) => void under.push(resolve));
    return [];
  };
  const recent = recentOf(store, { feedReadsMax: 2 });
  const feeds = Array.from(
    { length: 5 },
    (_, index) =>
      new Feed({ ...partsOf(`topic ${index}`), hub: new FeedHub({ slices }), after: endOfBlock(2), recent, progress }),
  );
  const stopping = new AbortController();
  const nexts = feeds.map((feed, index) => nextOf(feed, index === 2 ? stopping.signal : signal));
  await turn();
  expect(under).toHaveLength(2);
  stopping.abort();
  expect(await nexts[2]).toBeUndefined();
  for (let count = 0; count < 4; count += 1) {
    under[count]?.();
    await turn();
    expect(under).toHaveLength(Math.min(4, 3 + count));
  }
  expect(feeds.map(({ isCaughtUp }) => isCaughtUp)).toEqual([true, true, false, true, true]);
});

it("a hundred feeds that search pages in memory for a rare topic do not block the event loop", async () => {
  const progress = new IndexProgress();
  progress.advanceTo(300);
  const store = createMemoryStore();
  store.readBatches = async (_, { after, batchesMax }) =>
    Array.from({ length: 300 }, (_, index) => batchOf(index + 1))
      .filter(({ firstPosition }) => firstPosition > after)
      .slice(0, batchesMax);
  let looks = 0;
  const looksPerMs = 20;
  const sliceLooks = 5 * looksPerMs; // a slice lasts 5 ms
  const ownSlices = new TimeSlices({ monotonic: () => looks / looksPerMs, soon });
  const recent = new RecentBatches({ store, slices: ownSlices, limits: defaultEngineLimits });
  const interest = { only: undefined, includes: () => (looks += 1) < 0 };
  const request = { ...partsOf("rare"), slices: ownSlices, interest, after: positionZero, recent, progress };
  const stopping = new AbortController();
  const create = (): Feed => new Feed({ ...request, hub: new FeedHub({ slices: ownSlices }) });
  /** Returns the highest number of looks in one turn of the event loop. */
  const readAll = async (feeds: readonly Feed[]): Promise<number> => {
    let most = 0;
    for (const feed of feeds) void feed.more(stopping.signal);
    for (let seen = looks; !feeds.every(({ isCaughtUp }) => isCaughtUp); seen = looks) {
      await turn();
      most = Math.max(most, looks - seen);
    }
    return most;
  };
  await readAll([create()]);
  const most = await readAll(Array.from({ length: 100 }, create));
  stopping.abort();
  expect(looks).toBe(101 * 300);
  expect(most).toBeLessThan(3 * sliceLooks);
});

function recentOf(store: Store, limits: Partial<EngineLimits> = {}): RecentBatches {
  return new RecentBatches({ store, slices, limits: { ...defaultEngineLimits, ...limits } });
}

/** Offers 50 batches of one event to ten readers that take nothing, and returns how many each of them has queued. */
async function queuedOf(limits: Partial<EngineLimits>): Promise<readonly number[]> {
  const hub = new FeedHub({ slices });
  const [recent, progress] = [recentOf(createMemoryStore()), new IndexProgress()];
  const own = { ...partsOf("a"), hub, recent, progress, limits: { ...defaultEngineLimits, ...limits } };
  const feeds = Array.from({ length: 10 }, () => new Feed({ ...own, after: endOfBlock(0) }));
  await Promise.all(feeds.map((feed) => feed.catchUp(signal)));
  for (let block = 1; block <= 50; block += 1) hub.offer(defaultGroupId, [batchOf(block)]);
  return feeds.map((feed) => {
    let count = 0;
    for (; feed.peek() !== undefined; count += 1) feed.advance();
    return count;
  });
}

/** Memory of a queued batch. */
const queuedBytes = 512 + batchOf(1).events.byteLength;

it.each<[number, string, Partial<EngineLimits>]>([
  [50, "all batches, if all readers together may queue as many", { liveBytesMax: 500 * queuedBytes }],
  [20, "their share of the memory that all readers may queue", { liveBytesMax: 200 * queuedBytes }],
  [1, "one batch, however many readers there are", { liveBytesMax: 1 }],
])("ten readers that take nothing queue %i of 50 batches: %s", async (count, _, limits) => {
  expect(await queuedOf(limits)).toEqual(Array.from({ length: 10 }, () => count));
});

function batchOf(blockNumber: number): EventBatch {
  return batchOfOne({ topic: "a", blockNumber, sequence: blockNumber });
}
