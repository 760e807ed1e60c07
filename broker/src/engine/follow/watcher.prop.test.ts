import { setImmediate as turn } from "node:timers/promises";
import { encodeEvents } from "@stele/wire";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { EventBatch } from "../../domain/event.ts";
import { defaultGroupId } from "../../domain/group-id.ts";
import { endOfBlock, type Position, positionZero, toPosition } from "../../domain/position.ts";
import { toInterest } from "../../domain/interest.ts";
import type { CallbackSubscription, SubscriptionId } from "../../domain/subscription.ts";
import { matchesFilter, parseTopicFilter } from "../../domain/topic-filter.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { topicAddress } from "../../ledger/memory/memory-chain.ts";
import { silentLogger } from "../../lib/logger.ts";
import { ReadWriteLock } from "../../lib/read-write-lock.ts";
import { TimeSlices } from "../../lib/time-slices.ts";
import { noMetrics } from "../../ports/metrics.ts";
import type { Store } from "../../ports/store.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { eventsOf } from "../batch-events.ts";
import { AttemptHistory } from "../deliver/attempt-history.ts";
import { ReceiverFailures } from "../deliver/receiver-failures.ts";
import { SharedEventsAhead } from "../deliver/events-ahead.ts";
import { DeliveryWorker } from "../deliver/delivery-worker.ts";
import { DeliveryWorkers } from "../deliver/delivery-workers.ts";
import { ProgressWriter } from "../deliver/progress-writer.ts";
import { FeedHub } from "../dispatch/feed-hub.ts";
import { Feed } from "../dispatch/feed.ts";
import type { Readers } from "../dispatch/readers.ts";
import { RecentBatches } from "../dispatch/recent-batches.ts";
import { EventIds } from "../event-ids.ts";
import { defaultEngineLimits, type EngineLimits } from "../limits.ts";
import { RecordingSink } from "../testing/recording-sink.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { IndexHealth } from "./index-health.ts";
import { Troubles } from "../integrity/troubles.ts";
import { IndexProgress } from "../index-progress.ts";
import { Restarter } from "./restarter.ts";
import { RollBackHistory } from "../rollback-history.ts";
import { Watcher, type WatchPage } from "./watcher.ts";

const names = ["a/1", "a/2", "b"].map(parseTopicName);
const filters = ["a/1", "a/+", "#"].map(parseTopicFilter);
const limits = { ...defaultEngineLimits, readBatchesMax: 2, readBytesMax: 40 };
const { signal } = new AbortController();
const neverStopped: Readers = {
  stop: async () => expect.unreachable("the index never rolls back"),
  restart: () => expect.unreachable("the index never rolls back"),
};

/** A history: in each step, up to `answers` reads of the store return, and then `what` happens. */
const steps = fc.array(
  fc.record({
    answers: fc.nat({ max: 4 }),
    isSlow: fc.boolean(),
    what: fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({
          kind: fc.constant("block" as const),
          batches: fc.array(fc.tuple(fc.nat({ max: 2 }), fc.integer({ min: 1, max: 5 })), { maxLength: 4 }),
        }),
      },
      { weight: 4, arbitrary: fc.record({ kind: fc.constant("hint" as const) }) },
      {
        weight: 2,
        arbitrary: fc.record({
          kind: fc.constant("join" as const),
          filter: fc.nat({ max: 2 }),
          from: fc.constantFrom("first", "last", "middle"),
        }),
      },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant("rejoin" as const), worker: fc.nat({ max: 3 }) }) },
    ),
  }),
  { maxLength: 40 },
);
type Step = typeof steps extends fc.Arbitrary<(infer Value)[]> ? Value : never;

/** One node that watches an index which the test writes. The scheduler decides when reads of the store return. */
class Node {
  readonly sink = new RecordingSink();
  readonly subscriptions: CallbackSubscription[] = [];
  readonly #index = createMemoryStore();
  readonly #store: Store;
  readonly #progress = new IndexProgress();
  readonly #workers = new DeliveryWorkers((subscription) => this.#createWorker(subscription), {
    pause: () => undefined,
  });
  readonly #parts;
  readonly #watcher: Watcher;
  readonly #batches: EventBatch[] = [];
  readonly #sequences = new Map<number, number>();
  /** Reads of the index by workers. */
  reads = 0;
  #number = 0;
  #watching: Promise<unknown> = Promise.resolve();
  #changing: Promise<unknown> = Promise.resolve();

  constructor(
    scheduler: fc.Scheduler,
    options: { readonly page: WatchPage } & Pick<EngineLimits, "feedEventsMax" | "feedReadsMax">,
  ) {
    this.#store = this.#index;
    const { findHead, readBatches } = this.#index;
    this.#store = Object.assign(createMemoryStore(), {
      findHead: scheduler.scheduleFunction(findHead.bind(this.#index)),
      readBatches: scheduler.scheduleFunction(async (...call: Parameters<Store["readBatches"]>) => {
        if (call[1].bytesMax === limits.readBytesMax) this.reads += 1;
        return readBatches.apply(this.#index, call);
      }),
    });
    const clock = new VirtualClock();
    const logger = silentLogger;
    const slices = new TimeSlices(clock);
    const ownLimits = { ...limits, ...options };
    this.#parts = {
      store: this.#store,
      groupId: defaultGroupId,
      progress: this.#progress,
      clock,
      logger,
      sink: this.sink,
      metrics: noMetrics,
      eventIds: new EventIds(),
      slices,
      hub: new FeedHub({ slices }),
      recent: new RecentBatches({ store: this.#store, slices, limits: ownLimits }),
      randomness: { fraction: () => 0, uuid: () => "", bytes: (count: number) => new Uint8Array(count) },
      limits: ownLimits,
      progressWriter: new ProgressWriter({ store: createMemoryStore(), clock, logger, limits, onRefused: () => {} }),
    };
    this.#watcher = new Watcher({
      ...this.#parts,
      health: new IndexHealth(clock),
      restarter: new Restarter({
        ...this.#parts,
        rollBacks: new RollBackHistory(clock),
        changes: new ReadWriteLock(),
        readers: [neverStopped],
      }),
      page: options.page,
    });
  }

  async take({ what }: Step): Promise<void> {
    if (what.kind === "block") await this.#seal(what.batches);
    else if (what.kind === "hint") this.watch();
    else if (what.kind === "join") this.#join(what.filter, what.from);
    else this.#rejoin(what.worker);
  }

  /** Catches up once more, after the catch-up in progress. */
  watch(): void {
    this.#watching = this.#watching.then(async () => this.#watcher.catchUp(signal));
  }

  async idle(): Promise<void> {
    await this.#watching;
    await this.#changing;
  }

  /** The events that each subscription should have received, by subscription. */
  expected(): readonly (readonly string[])[] {
    const events = this.#batches.flatMap(eventsOf);
    return this.subscriptions.map(({ filter, cursor }) =>
      events.filter(({ topic, position }) => position > cursor && matchesFilter(filter, topic)).map(nameOf),
    );
  }

  delivered(): readonly (readonly string[])[] {
    const { attempts } = this.sink;
    return this.subscriptions.map(({ id }) =>
      attempts.filter(({ subscription }) => subscription.id === id).map(({ event }) => nameOf(event)),
    );
  }

  async #seal(wanted: readonly (readonly [topic: number, count: number])[]): Promise<void> {
    const number = (this.#number += 1);
    let index = 0;
    const batches = wanted.map(([topicIndex, count], logIndex): EventBatch => {
      const firstSequence = (this.#sequences.get(topicIndex) ?? 0) + 1;
      this.#sequences.set(topicIndex, firstSequence + count - 1);
      const events = encodeEvents(Array.from({ length: count }, () => ({ content: Buffer.from([1]), extensions: [] })));
      const firstPosition = toPosition(number, index);
      index += count;
      const topic = names[topicIndex] ?? parseTopicName("b");
      return {
        topic,
        firstSequence,
        firstPosition,
        count,
        events,
        logIndex,
        transactionHash: "0x",
        publisher: "0x",
        blockNumber: number,
      };
    });
    this.#batches.push(...batches);
    const opened = number === 1 ? names.map(toTopic) : [];
    await this.#index.applyBlocks(defaultGroupId, [
      { number, hash: `0x${number}`, opened, closed: [], batches, skippedSequences: [] },
    ]);
  }

  #join(filterIndex: number, from: "first" | "last" | "middle"): void {
    const filter = filters[filterIndex] ?? parseTopicFilter("#");
    const id = `00000000-0000-4000-8000-${String(this.subscriptions.length).padStart(12, "0")}` as SubscriptionId;
    const cursor = this.#cursorOf(from);
    const subscription: CallbackSubscription = {
      id,
      filter,
      cursor,
      groupId: defaultGroupId,
      delivery: { kind: "webhook", format: "RESTful", url: "http://receiver/", secret: undefined },
      state: "active",
      notifiedCount: 0,
      failedAttempts: 0,
      failedMs: 0,
      failingSince: 0,
      retryAt: 0,
      notifiedAt: 0,
      createdAt: 0,
      owner: undefined,
      epoch: 0,
    };
    this.subscriptions.push(subscription);
    this.#changing = this.#changing.then(() => this.#workers.add(subscription));
  }

  /** A cursor in the stored index, which this node's progress may not have reached yet. */
  #cursorOf(from: "first" | "last" | "middle"): Position {
    if (from === "first") return positionZero;
    if (from === "last") return endOfBlock(this.#number);
    return this.#batches.at(-1)?.firstPosition ?? positionZero;
  }

  #rejoin(index: number): void {
    const subscription = this.subscriptions[index];
    if (subscription === undefined) return;
    this.#changing = this.#changing.then(async () => this.#restart(subscription));
  }

  async #restart(subscription: CallbackSubscription): Promise<void> {
    const progress = await this.#workers.remove(subscription.id, 1_000);
    this.#workers.add({ ...subscription, ...progress });
  }

  #createWorker(subscription: CallbackSubscription): DeliveryWorker {
    const { filter, cursor } = subscription;
    const findGeneration = async (): Promise<number> => (await this.#store.findHead(defaultGroupId))?.generation ?? 0;
    const request = { filters: [filter], interest: toInterest(filter), after: cursor };
    const feed = new Feed({ ...this.#parts, ...request, findGeneration });
    return new DeliveryWorker(
      { subscription, feed },
      {
        troubles: new Troubles(),
        ...this.#parts,
        failures: new ReceiverFailures(this.#parts.clock),
        skippedLog: silentLogger,
        unreadLog: silentLogger,
        history: new AttemptHistory(),
        sharedEventsAhead: new SharedEventsAhead(),
        onGivenUp: () => expect.unreachable("every attempt is accepted"),
      },
    );
  }
}

function toTopic(name: (typeof names)[number]) {
  const address = topicAddress(name);
  return { name, address, sender: address, createdTimestamp: 0, sequence: 0, blockNumber: 0, closed: false };
}

function nameOf(event: { readonly topic: string; readonly sequence: number }): string {
  return `${event.topic} ${event.sequence}`;
}

/** Waits until no read is pending. A worker may need several turns from the end of one read to its next read. */
async function untilIdle(scheduler: fc.Scheduler): Promise<void> {
  await turn();
  while (scheduler.count() > 0) {
    await scheduler.waitOne();
    await turn();
  }
}

it("delivers each matching event once and in order, whenever reads of the store return", async () => {
  const pages = fc.record({ batchesMax: fc.integer({ min: 1, max: 6 }), bytesMax: fc.constantFrom(20, 60, 1_000) });
  const options = fc.record({
    page: pages,
    feedEventsMax: fc.integer({ min: 1, max: 12 }),
    feedReadsMax: fc.integer({ min: 1, max: 3 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), options, steps, async (scheduler, options, history) => {
      const node = new Node(scheduler, options);
      for (const step of history) {
        for (let count = 0; count < step.answers && scheduler.count() > 0; count += 1) {
          await scheduler.waitOne();
          if (step.isSlow) await turn();
        }
        await node.take(step);
      }
      node.watch();
      await scheduler.waitFor(node.idle());
      await untilIdle(scheduler);
      expect(node.delivered()).toEqual(node.expected());
    }),
    { numRuns: 800 },
  );
});

it("workers that keep up read nothing from the store, even if the watcher's page is full in the middle of a block", async () => {
  const pages = fc.record({ batchesMax: fc.integer({ min: 5, max: 9 }), bytesMax: fc.constant(1_000) });
  const blocks = steps.map((all) => all.filter(({ what }) => what.kind === "block" || what.kind === "hint"));
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), pages, blocks, async (scheduler, page, history) => {
      const node = new Node(scheduler, { page, feedEventsMax: 10_000, feedReadsMax: 1 });
      const settle = async (): Promise<void> => {
        node.watch();
        await scheduler.waitFor(node.idle());
        await untilIdle(scheduler);
      };
      await settle();
      for (const filter of filters.keys()) await node.take(joinOf(filter));
      await settle();
      const { reads } = node;
      for (const step of history) await node.take(step);
      await settle();
      expect(node.delivered()).toEqual(node.expected());
      expect(node.reads).toBe(reads);
    }),
  );
});

function joinOf(filter: number): Step {
  return { answers: 0, isSlow: false, what: { kind: "join", filter, from: "last" } };
}
