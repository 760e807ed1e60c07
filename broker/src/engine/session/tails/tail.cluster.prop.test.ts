import { encodeEvents, isBrokerError } from "@stele/wire";
import fc from "fast-check";
import { expect, it } from "vitest";
import { defaultGroupId } from "../../../domain/group-id.ts";
import { endOfBlock, type Position, positionZero } from "../../../domain/position.ts";
import { topicAddress } from "../../../ledger/memory/memory-chain.ts";
import { eventsOf } from "../../batch-events.ts";
import type { Attachment, TailStart } from "../../broker.ts";
import { MessageDelays } from "../../testing/message-delays.ts";
import { applyTrouble, nodeTroubles } from "../../testing/node-troubles.ts";
import { TestCluster, type TestNode } from "../../testing/test-cluster.ts";
import type { Delivery, EndReason, Peer, TailSession } from "../peer.ts";
import { placeIdOf } from "./tail-start.ts";

const runs = Math.ceil(40 * Number(process.env["CHECKS_ROUNDS"] ?? "0.5"));
const nodesMax = 3;
/** Maximum number of branches of the chain: after that, the test skips reorgs. */
const branchesMax = 8;
/** The blocks that no reorg removes: they open the topics. */
const blocksKept = 2 * branchesMax;
/** Events that a connection takes before its client reads. */
const roomMax = 3;

const node = fc.nat(nodesMax - 1);
const who = fc.nat(2);
const step = fc.oneof(
  {
    weight: 7,
    arbitrary: fc.record({
      kind: fc.constant("publish" as const),
      topic: fc.constantFrom("a", "b"),
      count: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("read" as const), who, count: fc.integer({ min: 1, max: 5 }) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("connect" as const), who, node, ms: fc.constantFrom(0, 30, 3_000) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom("leave" as const, "begin anew"), who }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom(...nodeTroubles),
      node,
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("reorganise" as const),
      depth: fc.integer({ min: 1, max: 3 }),
      /** Events that take the places of removed ones. */
      refill: fc.nat(3),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1, 20, 60, 300, 2_000, 9_000) }),
  },
);
const history = fc.record({
  steps: fc.array(step, { minLength: 8, maxLength: 30, size: "max" }),
  /** Delays of successive messages between nodes and the store, in milliseconds. */
  delaysMs: fc.array(fc.constantFrom(0, 1, 5, 20, 60), { minLength: 1, maxLength: 12 }),
});
type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never;

/** A message to a client: an event, or a new place to resume from. */
type Message = { readonly delivery: Delivery } | { readonly id: string; readonly resync: Position | undefined };

/** A connection like the gateway's. Its messages wait until the client reads them. */
class TailPeer implements Peer {
  readonly messages: Message[] = [];
  #given: Position | undefined;
  session: TailSession | undefined;
  start: TailStart | undefined;
  /** Where the tail began; lower if a reorg has removed that position since. */
  base: Position | undefined;
  endedBecause: EndReason | undefined;

  get hasRoom(): boolean {
    return this.messages.length < roomMax;
  }

  begin(session: TailSession, start: TailStart): void {
    this.session = session;
    this.start = start;
    this.#given = start.position;
    this.base = start.position;
    this.messages.push({ id: start.id, resync: start.isRolledBack ? start.position : undefined });
  }

  deliver(delivery: Delivery): void {
    expect(this.endedBecause).toBeUndefined();
    this.#given = delivery.event.position;
    this.messages.push({ delivery });
  }

  rolledBack(to: Position, generation: number): void {
    if (this.#given === undefined || this.#given <= to) return;
    this.#given = to;
    this.messages.push({ id: placeIdOf(to, generation), resync: to });
  }

  release(): void {}

  ended(reason: EndReason): void {
    this.endedBecause = reason;
  }
}

/** A client that keeps the events of its tail, drops those that a reorg removed, and resumes with its last id. */
class Reader {
  readonly #cluster: TestCluster;
  readonly #after: string;
  readonly events: { readonly position: Position; readonly text: string }[] = [];
  #lastId: string | undefined;
  /** The client has every event after this position. */
  since: Position | undefined;
  #peer = new TailPeer();
  #attachment: Pick<Attachment, "end"> | undefined;
  #node: TestNode | undefined;

  constructor(cluster: TestCluster, after: string) {
    this.#cluster = cluster;
    this.#after = after;
  }

  get isConnected(): boolean {
    const { start, endedBecause } = this.#peer;
    return start !== undefined && endedBecause === undefined && this.#node?.gate.isKilled === false;
  }

  /** Connects to a node; returns after `ms` at the latest. Messages of the former connection are lost. */
  async connect(at: number, ms: number): Promise<void> {
    const found = this.#cluster.find(at);
    if (found === undefined) return;
    this.leave();
    const peer = this.#peer;
    this.#node = found;
    const onConnected = (session: TailSession, start: TailStart): void => peer.begin(session, start);
    const call = { groupId: undefined, filters: ["#"], after: this.#after, lastEventId: this.#lastId, onConnected };
    const open = async (): Promise<void> => {
      const attachment = await found.broker.tail(call, peer);
      if (this.#peer === peer) this.#attachment = attachment;
      else void attachment.end().catch(() => undefined);
    };
    const failed = (error: unknown): void => {
      peer.endedBecause = "failed";
      if (!isPassing(error)) throw error;
    };
    await Promise.race([open().catch(failed), this.#cluster.clock.advance(ms)]);
  }

  leave(): void {
    void this.#attachment?.end().catch(() => undefined);
    this.#attachment = undefined;
    this.#peer = new TailPeer();
    this.#node = undefined;
  }

  /** Call it when a reorg has removed all events after a position: the client must get those of the new branch. */
  cutBack(to: Position): void {
    const { base } = this.#peer;
    if (base !== undefined && base > to) this.#peer.base = to;
    if (this.since !== undefined && this.since > to) this.since = to;
  }

  /** Forgets everything, as a reloaded page does. */
  forget(): void {
    this.leave();
    this.events.length = 0;
    this.#lastId = undefined;
    this.since = undefined;
  }

  /** Reads one message. */
  read(): boolean {
    const message = this.#peer.messages.shift();
    if (message === undefined) return false;
    if ("delivery" in message) this.#take(message.delivery);
    else {
      this.#lastId = message.id;
      this.since ??= this.#peer.base;
      if (message.resync !== undefined) this.#drop(message.resync);
    }
    this.#node?.gate.receive(() => this.#peer.session?.wake());
    return true;
  }

  #take({ event: { position, content }, eventId }: Delivery): void {
    expect(position).toBeGreaterThan(this.events.at(-1)?.position ?? this.since ?? positionZero);
    this.events.push({ position, text: new TextDecoder().decode(content) });
    this.#lastId = eventId;
  }

  #drop(to: Position): void {
    while ((this.events.at(-1)?.position ?? positionZero) > to) this.events.pop();
    if (this.since !== undefined && this.since > to) this.since = to;
  }
}

class World {
  readonly cluster: TestCluster;
  readonly readers: readonly Reader[];
  #texts = 0;
  /** Reorgs so far. */
  #branch = 0;

  constructor(cluster: TestCluster) {
    this.cluster = cluster;
    this.readers = ["OFFSET_FIRST", "OFFSET_LAST", "OFFSET_LAST"].map((after) => new Reader(cluster, after));
  }

  async advance(ms: number): Promise<void> {
    await this.cluster.clock.advance(ms);
  }

  async take(one: History["steps"][number]): Promise<void> {
    const reader = "who" in one ? this.readers[one.who] : undefined;
    if (one.kind === "wait") await this.advance(one.ms);
    else if (one.kind === "publish") this.#publish(one.topic, one.count);
    else if (one.kind === "read") for (let times = 0; times < one.count; times += 1) reader?.read();
    else if (one.kind === "connect") await reader?.connect(one.node, one.ms);
    else if ("who" in one && one.kind === "leave") reader?.leave();
    else if ("who" in one) reader?.forget();
    else if (one.kind === "reorganise") this.#reorganise(one.depth, one.refill);
    else applyTrouble(this.cluster, one.kind, one.node);
    await this.advance(20);
  }

  /**
   * Publishes events in one block. Each branch of the chain has topics of its own: the broker cannot tell an event from one that another branch had in the same
   * block with the same number.
   */
  #publish(topic: string, count: number): void {
    const contents = Array.from({ length: count }, () => String((this.#texts += 1)));
    const events = encodeEvents(contents.map((text) => ({ content: new TextEncoder().encode(text), extensions: [] })));
    this.cluster.chain.publish([{ address: topicAddress(`${topic}/${this.#branch}`), count, events }]);
  }

  #reorganise(depth: number, refill: number): void {
    const { chain } = this.cluster;
    if (this.#branch === branchesMax - 1) return;
    this.#branch += 1;
    const to = Math.max(blocksKept, chain.head - depth);
    chain.cutBack(to);
    for (const reader of this.readers) reader.cutBack(endOfBlock(to));
    for (let times = 0; times < refill; times += 1) this.#publish(times % 2 === 0 ? "a" : "b", 1);
  }

  /** Makes everything work again, and lets the readers read to the end. */
  async finish(): Promise<void> {
    await this.cluster.recover(nodesMax, 40_000);
    for (let blocks = 0; blocks < 8; blocks += 1) this.cluster.chain.sealEmpty(); // The broker waits while the chain is shorter than the index.
    await this.advance(40_000);
    for (const [index, reader] of this.readers.entries()) {
      for (let tries = 0; !reader.isConnected && tries < 5; tries += 1) {
        await reader.connect(index, 3_000);
        await this.advance(1_000);
      }
      expect(reader.isConnected).toBe(true);
      for (let isIdle = false; !isIdle; ) {
        isIdle = true;
        while (reader.read()) isIdle = false;
        await this.advance(200);
      }
    }
  }

  /** The events of the final chain, in order. */
  async events(): Promise<readonly { readonly position: Position; readonly text: string }[]> {
    const range = { after: positionZero, upTo: endOfBlock(1_000_000), topic: undefined };
    const limits = { batchesMax: 10_000, bytesMax: 1 << 30 };
    const batches = await this.cluster.shared.store.readBatches(defaultGroupId, { ...range, ...limits });
    return batches
      .flatMap((batch) => eventsOf(batch))
      .map(({ position, content }) => ({ position, text: new TextDecoder().decode(content) }));
  }
}

/** Whether a client tries again after the error. */
function isPassing(error: unknown): boolean {
  return (["busy", "storeUnreachable", "chainUnreachable"] as const).some((name) => isBrokerError(error, name));
}

async function check({ steps, delaysMs }: History): Promise<void> {
  const delays = new MessageDelays(delaysMs);
  const cluster = await TestCluster.start(nodesMax, {
    delayMs: delays.next,
    limits: { feedEventsMax: 4, readBatchesMax: 2 },
  });
  for (let branch = 0; branch < branchesMax; branch += 1) {
    for (const topic of ["a", "b"]) cluster.chain.open(`${topic}/${branch}`, `0x${"99".repeat(20)}`);
  }
  await cluster.clock.advance(1_000);
  const world = new World(cluster);
  delays.isOn = true;
  for (const one of steps) await world.take(one);
  delays.isOn = false;
  await world.finish();
  const events = await world.events();
  for (const reader of world.readers) {
    expect(reader.events).toEqual(events.filter(({ position }) => position > (reader.since ?? 0)));
  }
  const sessions = await cluster.shared.store.sessions.listSessions({ after: undefined, limit: 100 });
  expect(sessions.length).toBe(world.readers.length);
  await cluster.stopAll();
}

it(
  "a reader that resumes with its last id gets each event of the final chain once and in order, whichever nodes serve it and however they fail",
  async () => {
    await fc.assert(fc.asyncProperty(history, check), { numRuns: runs });
  },
  60_000 * runs,
);
