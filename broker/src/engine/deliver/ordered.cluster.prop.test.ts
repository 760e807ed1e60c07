import { isBrokerError } from "@stele/wire";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { DeliveryOptionsCall } from "../../domain/delivery-options.ts";
import type { Event } from "../../domain/event.ts";
import { defaultGroupId } from "../../domain/group-id.ts";
import { endOfBlock, type Position, positionZero } from "../../domain/position.ts";
import type { AttemptOutcome, Notification } from "../../ports/sink.ts";
import { eventsOf } from "../batch-events.ts";
import type { SubscriptionOrder } from "../operate/calls.ts";
import { MessageDelays } from "../testing/message-delays.ts";
import { testCaller } from "../testing/as-caller.ts";
import { applyTrouble, nodeTroubles } from "../testing/node-troubles.ts";
import { TestCluster } from "../testing/test-cluster.ts";

const runs = Math.ceil(25 * Number(process.env["CHECKS_ROUNDS"] ?? "0.5"));
const nodesMax = 3;
const topics = ["a", "b"] as const;
/** How the subscriptions begin; orders change them. */
const subscriptions: readonly DeliveryOptionsCall[] = [
  { onFailure: "skip", attemptsMax: 1 },
  { concurrency: 3 },
  { batchEvents: 3, batchMs: 20, onFailure: "skip", attemptsMax: 2 },
  { concurrency: 2, batchEvents: 2, onFailure: "skip", attemptsMax: 1 },
];

const node = fc.nat(nodesMax - 1);
const which = fc.nat(subscriptions.length - 1);
const order: fc.Arbitrary<SubscriptionOrder> = fc.oneof(
  fc.record({ kind: fc.constantFrom("pause" as const, "resume", "resume", "retry") }),
  fc.constant({ kind: "skip" as const, to: undefined }),
  fc.record({ kind: fc.constant("skip" as const), to: fc.constantFrom("OFFSET_LAST", { sequence: 3 }) }),
  fc.record({ kind: fc.constant("replay" as const), from: fc.constantFrom("OFFSET_FIRST", { sequence: 2 }) }),
  fc.record({ kind: fc.constantFrom("redeliver" as const, "redeliver", "discard"), eventId: fc.constant(undefined) }),
  fc.record({
    kind: fc.constant("change" as const),
    change: fc.record({ concurrency: fc.constantFrom(1, 2, 3), batchEvents: fc.constantFrom(0, 2, 4) }),
  }),
);
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("publish" as const),
      node,
      topic: fc.constantFrom(...topics),
      count: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 7, arbitrary: fc.record({ kind: fc.constant("order" as const), node, which, order }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("subscribe" as const), node, which }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom(...nodeTroubles),
      node,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("reorganise" as const),
      depth: fc.integer({ min: 1, max: 3 }),
      refill: fc.nat(3),
    }),
  },
  {
    weight: 7,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1, 20, 60, 300, 2_000, 9_000) }),
  },
);
const history = fc.record({
  steps: fc.array(step, { minLength: 10, maxLength: 40, size: "max" }),
  /** Delays of successive messages between nodes and the store, in milliseconds. */
  delaysMs: fc.array(fc.constantFrom(0, 1, 5, 20, 60), { minLength: 1, maxLength: 12 }),
  /** How the receivers answer: after a time in milliseconds, or with a failure. */
  answers: fc.array(fc.constantFrom(0, 0, 0, 10, 100, 1_500, "fails" as const), { minLength: 1, maxLength: 12 }),
});
type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never;
type Range = { readonly after: Position; readonly upTo: Position };

/** What happened to the events of one subscription, as its receiver and the store see it. */
class Ledger {
  readonly accepted = new Map<string, Position>();
  /** Events that an operator discarded, or that are or were dead letters. */
  readonly discarded = new Set<string>();
  readonly letters = new Set<Position>();
  skipped: readonly Range[] = [];
  since: Position = positionZero;
  /** Orders to discard dead letters that may be in progress. */
  discards = 0;

  /** Forgets what happened after a place. */
  cutBack(to: Position): void {
    for (const [name, position] of this.accepted) if (position > to) this.accepted.delete(name);
    this.skipped = this.skipped.map(({ after, upTo }) => ({ after, upTo: Math.min(upTo, to) as Position }));
  }

  isSkipped(position: Position): boolean {
    return this.skipped.some(({ after, upTo }) => position > after && position <= upTo);
  }
}

class World {
  readonly cluster: TestCluster;
  readonly ids: string[] = [];
  readonly #ledgers = new Map<string, Ledger>();
  readonly #answers: History["answers"];
  #answered = 0;
  #texts = 0;
  #isHealed = false;

  constructor(cluster: TestCluster, answers: History["answers"]) {
    this.cluster = cluster;
    this.#answers = answers;
    this.#watchStore();
  }

  ledgerOf(id: string): Ledger {
    const ledger = this.#ledgers.get(id) ?? new Ledger();
    this.#ledgers.set(id, ledger);
    return ledger;
  }

  async begin(): Promise<void> {
    for (const topic of topics) await this.cluster.run(this.cluster.node(0).broker.open({ topic, groupId: undefined }));
    for (const [index, options] of subscriptions.entries()) {
      const url = `http://receiver/${index}`;
      this.cluster.sink.receive(url, (notification) => this.#receive(notification));
      this.ids.push(
        await this.cluster.run(this.cluster.subscribe(index % nodesMax, "#", { url, options, offset: "OFFSET_FIRST" })),
      );
    }
  }

  async take(one: History["steps"][number]): Promise<void> {
    const id = "which" in one ? (this.ids[one.which] ?? "") : "";
    if (one.kind === "wait") await this.cluster.clock.advance(one.ms);
    else if (one.kind === "publish")
      for (let times = 0; times < one.count; times += 1) this.#submit(one.node, one.topic);
    else if (one.kind === "order") void this.#order(one.node, id, one.order);
    else if (one.kind === "subscribe") void this.#subscribe(one.node, id, one.which);
    else if (one.kind === "reorganise") this.#reorganise(one.depth, one.refill);
    else applyTrouble(this.cluster, one.kind, one.node);
    await this.cluster.clock.advance(20);
  }

  /** Makes everything work again, and waits until everything is delivered. */
  async finish(): Promise<void> {
    this.#isHealed = true;
    await this.cluster.recover(nodesMax, 40_000);
    for (let blocks = 0; blocks < 8; blocks += 1) this.cluster.chain.sealEmpty(); // Nodes wait while the chain is shorter than the index.
    await this.cluster.clock.advance(40_000);
    for (const [index, id] of this.ids.entries()) {
      const { operator } = this.cluster.node(index % nodesMax).broker;
      await this.cluster.run(
        operator.orderSubscription(testCaller, id, { order: { kind: "resume" }, isDryRun: false }),
      );
    }
    await this.cluster.clock.advance(40_000);
  }

  /** Every event of the index, in order. */
  async events(): Promise<readonly Event[]> {
    const range = { after: positionZero, upTo: endOfBlock(1_000_000), topic: undefined };
    const limits = { batchesMax: 10_000, bytesMax: 1 << 30 };
    return (await this.cluster.shared.store.readBatches(defaultGroupId, { ...range, ...limits })).flatMap(eventsOf);
  }

  #watchStore(): void {
    const { store } = this.cluster.shared;
    const move = store.moveSubscription.bind(store);
    store.moveSubscription = async (key, change, generation) => {
      const before = (await store.findSubscription(key.id))?.cursor ?? positionZero;
      const moving = move(key, change, generation);
      const outcome = await moving;
      if (outcome !== "moved" || change.cursor === undefined) return outcome;
      const ledger = this.ledgerOf(key.id);
      if (change.cursor < before) ledger.cutBack(change.cursor);
      else ledger.skipped = [...ledger.skipped, { after: before, upTo: change.cursor }];
      return outcome;
    };
    const rollBack = store.rollBack.bind(store);
    store.rollBack = async (groupId, to, lease) => {
      const end = to === undefined ? positionZero : endOfBlock(to.number);
      const done = await rollBack(groupId, to, lease);
      for (const ledger of this.#ledgers.values()) ledger.cutBack(end);
      return done;
    };
    const { deadLetters } = store;
    const remove = deadLetters.remove.bind(deadLetters);
    deadLetters.remove = async (letters) => {
      for (const { subscriptionId, eventId } of letters) {
        const ledger = this.ledgerOf(subscriptionId);
        if (ledger.discards > 0) ledger.discarded.add(eventId);
      }
      return remove(letters);
    };
    const save = store.saveProgress.bind(store);
    store.saveProgress = async (rows) => {
      for (const { id, skipped = [] } of rows)
        for (const { position } of skipped) this.ledgerOf(id).letters.add(position);
      return save(rows);
    };
  }

  async #receive(notification: Notification): Promise<AttemptOutcome> {
    this.#answered += 1;
    const answer = this.#isHealed ? 0 : this.#answers[this.#answered % this.#answers.length];
    if (answer === "fails") return { status: "failed", reason: "answered 500" };
    if (answer !== undefined && answer > 0)
      await new Promise<void>((resolve) => void this.cluster.clock.after(answer, resolve));
    const ledger = this.ledgerOf(notification.subscription.id);
    for (const { event } of notification.batch ?? [notification]) ledger.accepted.set(nameOf(event), event.position);
    return { status: "accepted" };
  }

  #submit(at: number, topic: string): void {
    this.#texts += 1;
    const content = new TextEncoder().encode(String(this.#texts));
    try {
      this.cluster.find(at)?.broker.submit({ topic, groupId: undefined, content, extensions: [] }, () => undefined);
    } catch (error) {
      if (!isExpected(error)) throw error;
    }
  }

  async #order(at: number, id: string, one: SubscriptionOrder): Promise<void> {
    const found = this.cluster.find(at);
    if (found === undefined) return;
    const ledger = this.ledgerOf(id);
    if (one.kind === "discard") ledger.discards += 1;
    try {
      await found.broker.operator.orderSubscription(testCaller, id, { order: one, isDryRun: false });
      if (one.kind === "discard") ledger.discards -= 1;
    } catch (error) {
      if (!isExpected(error)) throw error;
    }
  }

  async #subscribe(at: number, id: string, index: number): Promise<void> {
    if (this.cluster.find(at) === undefined) return;
    try {
      await this.cluster.subscribe(at, "#", {
        url: `http://receiver/${index}`,
        subscriptionId: id,
        options: { batchMs: this.#texts % 30 },
      });
    } catch (error) {
      if (!isExpected(error)) throw error;
    }
  }

  #reorganise(depth: number, refill: number): void {
    const { chain } = this.cluster;
    chain.cutBack(Math.max(topics.length, chain.head - depth));
    for (let times = 0; times < refill; times += 1) this.#submit(times % nodesMax, topics[times % 2] ?? "a");
  }
}

const nameOf = (event: Event): string => `${event.topic} ${event.position} ${Buffer.from(event.content).toString()}`;

/** Errors that an operator may get while nodes fail. */
function isExpected(error: unknown): boolean {
  const names = [
    "busy",
    "storeUnreachable",
    "chainUnreachable",
    "subscriptionHeld",
    "eventNotExist",
    "parameterInvalid",
  ] as const;
  return names.some((name) => isBrokerError(error, name));
}

/** Names the lost events, among those up to the cursor or among all: the receiver did not accept them, and nobody skipped or discarded them. */
async function findMissing(world: World, isAll: boolean): Promise<readonly string[]> {
  const events = await world.events();
  const { store } = world.cluster.shared;
  const missing: string[] = [];
  for (const id of world.ids) {
    const row = (await store.listSubscriptions()).find((one) => one.id === id);
    if (row === undefined) throw new Error(`${id} is gone`);
    const ledger = world.ledgerOf(id);
    const letters = new Set(
      (await store.deadLetters.list(row.id, { after: undefined, limit: 1_000 })).map(({ position }) => position),
    );
    const due = events.filter(({ position }) => isAll || position <= row.cursor);
    const lost = due.filter(
      (event) =>
        !(
          ledger.accepted.has(nameOf(event)) ||
          ledger.isSkipped(event.position) ||
          letters.has(event.position) ||
          isDiscarded(ledger, event)
        ),
    );
    missing.push(...lost.map((event) => `${world.ids.indexOf(id)}: ${nameOf(event)}`));
  }
  return missing;
}

function isDiscarded({ discarded }: Ledger, { sequence, blockNumber }: Event): boolean {
  return [...discarded].some((eventId) => eventId.endsWith(`-${sequence}-${blockNumber}`));
}

/** The newest attempts for the events of each topic are in the order of the chain, except for events that were skipped. */
async function checkOrder(world: World): Promise<void> {
  const events = await world.events();
  for (const id of world.ids) {
    const ledger = world.ledgerOf(id);
    const own = world.cluster.attempts.filter(({ notification }) => notification.subscription.id === id);
    const sent = own.flatMap(({ notification }) =>
      (notification.batch ?? [notification]).map(({ event }) => nameOf(event)),
    );
    const last = new Map(sent.map((name, place) => [name, place]));
    for (const topic of topics) {
      const due = events.filter(
        (event) => event.topic === topic && !ledger.isSkipped(event.position) && !ledger.letters.has(event.position),
      );
      const places = due.map((event) => last.get(nameOf(event)) ?? Number.NaN);
      expect(places).toEqual(places.toSorted((left, right) => left - right));
    }
  }
}

async function check({ steps, delaysMs, answers }: History): Promise<void> {
  const delays = new MessageDelays(delaysMs);
  const cluster = await TestCluster.start(nodesMax, {
    delayMs: delays.next,
    limits: { feedEventsMax: 4, readBatchesMax: 2, retryDelayMsMax: 2_000 },
  });
  const world = new World(cluster, answers);
  await world.begin();
  delays.isOn = true;
  for (const one of steps) {
    await world.take(one);
    expect(await findMissing(world, false)).toEqual([]);
  }
  delays.isOn = false;
  await world.finish();
  expect(await findMissing(world, true)).toEqual([]);
  await checkOrder(world);
  await cluster.stopAll();
}

it(
  "no subscription loses an event or gets one out of order, despite orders of operators, reorgs and failures of nodes",
  async () => {
    await fc.assert(fc.asyncProperty(history, check), { numRuns: runs });
  },
  60_000 * runs,
);
