import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { AttemptOutcome, Notification } from "../../ports/sink.ts";
import { eventsOf } from "../batch-events.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { endOfBlock, positionZero } from "../../domain/position.ts";

const topics = ["a", "b", "c", "d"] as const;
const subscriptionId = "00000000-0000-4000-8000-00000000aaaa";
/** Seconds of virtual time in which all deliveries must finish. The longest series of failed attempts takes some minutes. */
const roundsMax = 3_000;

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("publish" as const),
      topic: fc.nat(3),
      count: fc.integer({ min: 1, max: 5 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("advance" as const), ms: fc.integer({ min: 1, max: 3_000 }) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "restart" as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: "kill" as const }) },
);

const history = fc.record({
  seed: fc.nat(),
  concurrency: fc.integer({ min: 1, max: 4 }),
  batchEvents: fc.integer({ min: 0, max: 5 }),
  batchMs: fc.constantFrom(0, 40),
  steps: fc.array(step, { minLength: 5, maxLength: 40 }),
});
type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never;

/** Pseudo-random numbers in [0,1) from a seed. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const keyOf = (topic: string, sequence: number): string => `${topic} ${sequence}`;

/** One subscription to all topics across restarts and kills of its broker, with checks of its invariants. */
class Scenario {
  readonly #random: () => number;
  readonly #history: History;
  readonly #store = createMemoryStore();
  readonly #chain = new MemoryChain({ clock: new VirtualClock() });
  readonly #accepted = new Set<string>();
  /** The events of each attempt in progress of the current engine. */
  #underWay: readonly string[][] = [];
  engine: TestEngine;

  constructor(history: History) {
    this.#history = history;
    this.#random = randomFrom(history.seed);
    this.engine = this.#build();
  }

  async run(): Promise<void> {
    const { concurrency, batchEvents, batchMs } = this.#history;
    await this.engine.broker.start();
    for (const topic of topics) await this.engine.broker.open({ topic, groupId: undefined });
    const options = { concurrency, batchEvents, batchMs };
    await this.engine.subscribe("#", { subscriptionId, offset: "OFFSET_FIRST", options });
    for (const one of this.#history.steps) {
      if (one.kind === "publish") await this.engine.publishMany(topics[one.topic] ?? "a", one.count);
      else if (one.kind === "advance") await this.engine.clock.advance(one.ms);
      else await this.#begin(one.kind);
      await this.#check();
    }
    for (let rounds = 0; (await this.#check()) > 0 && rounds < roundsMax; rounds += 1) {
      await this.engine.clock.advance(1_000);
    }
    expect(await this.#check()).toBe(0);
  }

  /** Stops the engine and starts a new one. A kill loses the progress that the engine has not stored yet. */
  async #begin(kind: "restart" | "kill"): Promise<void> {
    const save = this.#store.saveProgress.bind(this.#store);
    if (kind === "kill") this.#store.saveProgress = async () => [];
    await this.engine.stop();
    this.#store.saveProgress = save;
    this.engine = this.#build();
    await this.engine.broker.start();
    await this.engine.clock.settle();
  }

  #build(): TestEngine {
    const engine = new TestEngine({ store: this.#store, chain: this.#chain });
    this.#underWay = [];
    engine.sink.receive("http://receiver/", (notification) => this.#receive(notification, engine));
    return engine;
  }

  async #receive({ event, batch }: Notification, engine: TestEngine): Promise<AttemptOutcome> {
    const events = batch?.map((one) => one.event) ?? [event];
    const keys = events.map(({ topic, sequence }) => keyOf(topic, sequence));
    this.#checkOrder(events, keys);
    this.#underWay = [...this.#underWay, keys];
    await new Promise<void>((resolve) => void engine.clock.after(Math.floor(this.#random() * 300), resolve));
    this.#underWay = this.#underWay.filter((one) => one !== keys);
    if (this.#random() < 0.2) return { status: "failed", reason: "500" };
    if (this.#random() < 0.05) return { status: "failed", reason: "429", retryAfterMs: 2_000 };
    for (const key of keys) this.#accepted.add(key);
    return { status: "accepted" };
  }

  /**
   * Checks an attempt: for each event, the previous event of its topic was accepted or comes earlier in this request, and no other attempt in progress has
   * events of that topic.
   */
  #checkOrder(events: readonly { readonly topic: string; readonly sequence: number }[], keys: readonly string[]): void {
    const { concurrency, batchEvents } = this.#history;
    expect(keys.length).toBeLessThanOrEqual(Math.max(1, batchEvents));
    expect(this.#underWay.length).toBeLessThan(concurrency);
    for (const [index, { topic, sequence }] of events.entries()) {
      if (sequence > 1) {
        const before = keyOf(topic, sequence - 1);
        expect(this.#accepted.has(before) || keys.slice(0, index).includes(before), `${before} first`).toBe(true);
      }
      expect(this.#underWay.some((one) => one.some((key) => key.startsWith(`${topic} `)))).toBe(false);
    }
  }

  /** Checks that every event up to the stored cursor was accepted, and that the stored count is right. Returns the number of events after the cursor. */
  async #check(): Promise<number> {
    const row = await this.#store.findSubscription(subscriptionId as never);
    const upTo = endOfBlock(100_000);
    const range = { after: positionZero, upTo, topic: undefined, batchesMax: 10_000, bytesMax: 2 ** 30 };
    const events = (await this.#store.readBatches(defaultGroupId, range)).flatMap((batch) => eventsOf(batch));
    const passed = events.filter(({ position }) => position <= (row?.cursor ?? -1));
    for (const { topic, sequence } of passed) expect(this.#accepted.has(keyOf(topic, sequence))).toBe(true);
    expect(row?.notifiedCount).toBe(passed.length);
    return events.length - passed.length;
  }
}

let scenario: Scenario | undefined;
afterEach(async () => {
  await scenario?.engine.stop();
  scenario = undefined;
});

describe("a subscription with any concurrency and batch size, across restarts and kills", () => {
  it("gets every event in the order of its topic, and its cursor passes only accepted events", async () => {
    await fc.assert(
      fc.asyncProperty(history, async (one) => {
        await scenario?.engine.stop();
        scenario = new Scenario(one);
        await scenario.run();
      }),
      { numRuns: 25 },
    );
  }, 120_000);
});
