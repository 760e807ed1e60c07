import { encodeEvents } from "@stele/wire";
import fc from "fast-check";
import { expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import type { Event } from "../../domain/event.ts";
import { isCallback, type Subscription } from "../../domain/subscription.ts";
import { matchesFilter } from "../../domain/topic-filter.ts";
import { topicAddress } from "../../ledger/memory/memory-chain.ts";
import { eventsOf } from "../batch-events.ts";
import { type BegunAttempt, TestCluster } from "../testing/test-cluster.ts";

/** Number of histories; a long run sets CHECKS_ROUNDS to try more. */
const runs = Math.ceil(25 * Number(process.env["CHECKS_ROUNDS"] ?? "0.5"));
const timeoutMs = 4_800 * runs;
const nodesMax = 3;
const topicNames = ["a", "b/c", "b/d"] as const;
const filters = ["#", "a", "b/+"] as const;
const settledMs = 40_000;
const nodeArbitrary = fc.nat({ max: nodesMax - 1 });

const stepArbitrary = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("publish" as const),
      node: nodeArbitrary,
      topic: fc.constantFrom(...topicNames),
      count: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("subscribe" as const),
      node: nodeArbitrary,
      filter: fc.constantFrom(...filters),
      offset: fc.constantFrom("OFFSET_FIRST", "OFFSET_LAST"),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom("continue" as const, "continue" as const, "remove" as const),
      node: nodeArbitrary,
      which: fc.nat({ max: 20 }),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant("wait" as const),
      ms: fc.constantFrom(0, 1, 3, 60, 700, 3_000, 5_100, 9_000),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        "kill" as const,
        "stop" as const,
        "launch" as const,
        "halt" as const,
        "resume" as const,
        "refuse" as const,
        "silence" as const,
        "heal" as const,
      ),
      node: nodeArbitrary,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("reorganise" as const), depth: fc.integer({ min: 1, max: 4 }) }),
  },
);
type Step = typeof stepArbitrary extends fc.Arbitrary<infer Value> ? Value : never;

/** Several nodes with faults, and a record of every subscription and delivery. */
class World {
  readonly cluster: TestCluster;
  /** Subscriptions whose subscribe call has returned, in order. */
  readonly made: { readonly id: string; readonly filter: string }[] = [];
  readonly removed = new Map<string, number>();
  /** Events that a receiver has accepted, by subscription. */
  readonly accepted = new Map<string, Set<string>>();
  /** The lowest cursor that each subscription ever had. */
  readonly starts = new Map<string, number>();
  readonly #random: () => number;
  /** Number of resubscribe calls that may still be in progress, by subscription. */
  readonly #continuing = new Map<string, number>();
  #texts = 0;
  isHealed = false;

  constructor(seed: number) {
    this.#random = createRandom(seed);
    const delayMs = (): number => (this.#random() < 0.6 ? 0 : Math.floor(this.#random() * 8));
    this.cluster = new TestCluster({ limits: { retryDelayMsMax: 2_000 }, delayMs });
  }

  async start(): Promise<void> {
    const { cluster } = this;
    for (const name of topicNames) cluster.chain.open(name, `0x${"99".repeat(20)}`);
    for (let index = 0; index < nodesMax; index += 1) cluster.launch(index);
    this.#watchStore();
    await cluster.clock.advance(4_000);
    const made = filters.map((filter, index) => this.#subscribe(index, filter, "OFFSET_FIRST"));
    await cluster.run(Promise.all(made));
  }

  async step(step: Step): Promise<void> {
    const { cluster } = this;
    if (step.kind === "wait") await cluster.clock.advance(step.ms);
    else if (step.kind === "publish") this.#publish(step);
    else if (step.kind === "subscribe") void this.#subscribe(step.node, step.filter, step.offset);
    else if (step.kind === "continue" || step.kind === "remove") this.#change(step);
    else if (step.kind === "reorganise") this.#reorganise(step.depth);
    else await this.#applyFault(step.kind, step.node);
    await cluster.clock.settle();
  }

  /** Ends all faults, starts all nodes, and waits `settledMs`, in which everything can be delivered. */
  async heal(): Promise<void> {
    this.isHealed = true;
    for (const { gate } of this.cluster.nodes) {
      gate.resume();
      gate.heal();
    }
    await this.cluster.clock.settle();
    for (let index = 0; index < nodesMax; index += 1)
      if (this.cluster.find(index) === undefined) this.cluster.launch(index);
    await this.cluster.clock.advance(settledMs);
  }

  /** Every event of the index, in order. */
  async events(): Promise<readonly Event[]> {
    const { store } = this.cluster.shared;
    const range = { after: 0, upTo: Number.MAX_SAFE_INTEGER, topic: undefined, batchesMax: 1e6, bytesMax: 1e9 };
    return (await store.readBatches(defaultGroupId, range as never)).flatMap(eventsOf); // Positions are numbers.
  }

  /** Records every new subscription in the store, and the lowest cursor that rollbacks set. */
  #watchStore(): void {
    const { store } = this.cluster.shared;
    const insert = store.insertSubscription.bind(store);
    store.insertSubscription = async (subscription, generation) => {
      const outcome = await insert(subscription, generation);
      if (outcome === "inserted") {
        if (isCallback(subscription)) this.#receive({ id: subscription.id, url: subscription.delivery.url });
        this.starts.set(subscription.id, subscription.cursor);
      }
      return outcome;
    };
    const rollBack = store.rollBack.bind(store);
    store.rollBack = async (...call) => {
      const done = await rollBack(...call);
      for (const { id, cursor } of await store.listSubscriptions())
        this.starts.set(id, Math.min(this.starts.get(id) ?? 0, cursor));
      return done;
    };
  }

  /** A receiver that is sometimes slow and sometimes fails, until {@link heal}. */
  #receive({ id, url }: { readonly id: string; readonly url: string }): void {
    const accepted = this.accepted.get(id) ?? new Set();
    this.accepted.set(id, accepted);
    this.cluster.sink.receive(url, async ({ event }) => {
      const chance = this.isHealed ? 1 : this.#random();
      if (chance < 0.15) return { status: "failed", reason: "503" };
      if (chance < 0.5) await new Promise<void>((resolve) => void this.cluster.clock.after(chance * 2_000, resolve));
      accepted.add(nameOf(event));
      return { status: "accepted" };
    });
  }

  #publish({ node, topic, count }: Step & { kind: "publish" }): void {
    for (let index = 0; index < count; index += 1) {
      this.#texts += 1;
      const text = `event ${this.#texts}`;
      if (this.cluster.find(node) === undefined) this.#append(topic, text);
      else this.cluster.publish(node, topic, text).catch(() => undefined);
    }
  }

  #append(topic: string, text: string): void {
    const events = encodeEvents([{ content: Buffer.from(text), extensions: [] }]);
    this.cluster.chain.publish([{ address: topicAddress(topic), count: 1, events }]);
  }

  async #subscribe(node: number, filter: string, offset: string): Promise<void> {
    if (this.cluster.find(node) === undefined) return;
    this.#texts += 1;
    try {
      const id = await this.cluster.subscribe(node, filter, { offset, url: `http://receiver/${this.#texts}` });
      this.made.push({ id, filter });
    } catch {
      // The call failed. If it inserted a row nevertheless, #watchStore has seen it.
    }
  }

  /** Removes no subscription while a resubscribe may be in progress: that call could create the subscription again. */
  #change({ kind, node, which }: Step & { kind: "continue" | "remove" }): void {
    const one = this.made[which % Math.max(1, this.made.length)];
    if (one === undefined || this.cluster.find(node) === undefined) return;
    if (kind === "continue" && !this.removed.has(one.id)) void this.#continue(node, one);
    if (kind === "remove" && !this.#continuing.get(one.id)) void this.#remove(node, one.id);
  }

  async #continue(node: number, { id, filter }: { readonly id: string; readonly filter: string }): Promise<void> {
    this.#texts += 1;
    const url = `http://receiver/${this.#texts}`;
    this.#receive({ id, url });
    this.#continuing.set(id, (this.#continuing.get(id) ?? 0) + 1);
    try {
      await this.cluster.subscribe(node, filter, { subscriptionId: id, url });
      this.#continuing.set(id, (this.#continuing.get(id) ?? 0) - 1);
    } catch {
      // The call may still be in progress.
    }
  }

  async #remove(node: number, id: string): Promise<void> {
    this.removed.set(id, Number.POSITIVE_INFINITY);
    try {
      await this.cluster.unSubscribe(node, id);
      this.removed.set(id, this.cluster.clock.now());
    } catch {
      // The subscription may be removed or not.
    }
  }

  #reorganise(depth: number): void {
    const { chain } = this.cluster;
    const from = chain.head;
    const to = Math.max(topicNames.length, from - depth);
    if (to >= from) return;
    chain.cutBack(to);
    for (let number = to; number <= from; number += 1) {
      this.#texts += 1;
      const topic = topicNames[this.#texts % topicNames.length] ?? "a";
      if (this.#random() < 0.5) chain.sealEmpty();
      else this.#append(topic, `other ${this.#texts}`);
    }
  }

  async #applyFault(kind: (Step & { node: number })["kind"], index: number): Promise<void> {
    const node = this.cluster.find(index);
    if (node === undefined) {
      if (kind === "launch") this.cluster.launch(index);
      return;
    }
    if (kind === "kill") this.cluster.kill(index);
    if (kind === "stop") await this.cluster.stop(index);
    if (kind === "halt") node.gate.halt();
    if (kind === "resume") node.gate.resume();
    if (kind === "refuse") node.gate.cut("refused");
    if (kind === "silence") node.gate.cut("silent");
    if (kind === "heal") node.gate.heal();
  }
}

const nameOf = (event: Event): string => `${event.topic} ${event.position} ${Buffer.from(event.content).toString()}`;

/** Only the owner attempts an event, and never one that the stored cursor has passed. */
async function checkAttempt(world: World, attempt: BegunAttempt): Promise<void> {
  const { node, notification, at } = attempt;
  const { id } = notification.subscription;
  const row = await attempt.stored;
  if (row === undefined) {
    expect(at).toBeLessThanOrEqual(world.removed.get(id) ?? Number.NEGATIVE_INFINITY);
    return;
  }
  const owner = row.owner !== undefined && node.ids.has(row.owner) ? node.address : row.owner;
  expect({ id, owner, at }).toEqual({ id, owner: node.address, at });
  const name = nameOf(notification.event);
  expect(`${name} after ${notification.event.position > row.cursor}`).toBe(`${name} after true`);
}

const isWanted = (world: World, row: Subscription, event: Event): boolean =>
  matchesFilter(row.filter, event.topic) && event.position > (world.starts.get(row.id) ?? 0);

/** No cursor has passed an event that no receiver has accepted. */
async function checkCursors(world: World): Promise<void> {
  const events = await world.events();
  for (const row of await world.cluster.shared.store.listSubscriptions()) {
    const passed = events.filter((event) => isWanted(world, row, event) && event.position <= row.cursor).map(nameOf);
    expect(passed.filter((name) => world.accepted.get(row.id)?.has(name) !== true)).toEqual([]);
  }
}

/** A receiver accepted every matching event, and the last attempts of these events are in the order of the chain. */
async function checkDeliveries(world: World): Promise<void> {
  const events = await world.events();
  for (const row of await world.cluster.shared.store.listSubscriptions()) {
    const expected = events.filter((event) => isWanted(world, row, event)).map(nameOf);
    expect(expected.filter((name) => world.accepted.get(row.id)?.has(name) !== true)).toEqual([]);
    const own = world.cluster.attempts.filter(({ notification }) => notification.subscription.id === row.id);
    const last = new Map(own.map(({ notification }, place) => [nameOf(notification.event), place]));
    const places = expected.map((name) => last.get(name) ?? Number.NaN);
    expect(places).toEqual(places.toSorted((left, right) => left - right));
  }
}

/** All nodes are ready, subscriptions are balanced and active with no event waiting, and every node lists the same. */
async function checkRest(world: World): Promise<void> {
  const { cluster } = world;
  expect(cluster.chain.head).toBe((await cluster.shared.store.findHead(defaultGroupId))?.blockNumber);
  for (const { broker } of cluster.nodes) expect(broker.health()).toMatchObject([{ ready: true }]);
  const listings = await cluster.run(Promise.all(cluster.nodes.map(({ broker }) => broker.listSubscriptions())));
  const [listing = []] = listings;
  const counts = listing.map(({ subscriptions }) => subscriptions.length);
  expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
  for (const { subscriptions } of listing) {
    for (const { notifyingCount, state } of subscriptions)
      expect({ notifyingCount, state }).toEqual({ notifyingCount: 0, state: "active" });
  }
  for (const other of listings) expect(other).toEqual(listing);
  for (const [id, at] of world.removed) {
    const isListed = listing.some(({ subscriptions }) => subscriptions.some((row) => row.id === id));
    if (Number.isFinite(at)) expect(isListed).toBe(false);
  }
}

async function checkHistory(seed: number, steps: readonly Step[]): Promise<World> {
  const world = new World(seed);
  try {
    await world.start();
    for (const step of steps) {
      await world.step(step);
      await checkCursors(world);
    }
    await world.heal();
    await checkCursors(world);
    for (const attempt of world.cluster.attempts) await checkAttempt(world, attempt);
    await checkDeliveries(world);
    await checkRest(world);
    return world;
  } finally {
    await world.cluster.stopAll();
  }
}

/** Pseudo-random numbers in [0,1) from a seed. */
function createRandom(seed: number): () => number {
  let state = (seed ^ 0x9e3779b9) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

it(
  "under any history of faults, every subscription gets every event in order, only from its owner, and repeats only of unacknowledged events",
  async () => {
    const history = fc.array(stepArbitrary, { minLength: 20, maxLength: 60, size: "max" });
    await fc.assert(
      fc.asyncProperty(fc.nat(), history, async (seed, steps) => {
        await checkHistory(seed, steps);
      }),
      { numRuns: runs, endOnFailure: true },
    );
  },
  timeoutMs,
);
