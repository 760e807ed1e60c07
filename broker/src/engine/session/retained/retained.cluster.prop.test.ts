import { decodeEvents, isBrokerError } from "@stele/wire";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { Ticket } from "../../../domain/delivery-window.ts";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import { topicAddress } from "../../../ledger/memory/memory-chain.ts";
import type { Attachment } from "../../broker.ts";
import { MessageDelays } from "../../testing/message-delays.ts";
import { applyTrouble, type NodeTrouble, nodeTroubles } from "../../testing/node-troubles.ts";
import { TestCluster, type TestNode } from "../../testing/test-cluster.ts";
import type { Delivery, Peer } from "../peer.ts";

const runs = Math.ceil(40 * Number(process.env["CHECKS_ROUNDS"] ?? "0.5"));
const nodesMax = 3;
const topics = ["a", "b", "b/c", "d"] as const;
const expiryMs = 1_000_000_000;

const node = fc.nat(nodesMax - 1);
const who = fc.nat(1);
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("publish" as const),
      node,
      topic: fc.constantFrom(...topics),
      isEmpty: fc.constantFrom(false, false, false, true),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant("answer" as const), who, count: fc.integer({ min: 1, max: 3 }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("connect" as const),
      who,
      node,
      windowMax: fc.integer({ min: 1, max: 4 }),
      ms: fc.constantFrom(0, 30, 3_000),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("subscribe" as const), who, ms: fc.constantFrom(0, 30, 3_000) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom(...nodeTroubles),
      node,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("reorganise" as const),
      depth: fc.integer({ min: 1, max: 3 }),
      refill: fc.nat(3),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1, 20, 60, 300, 2_000, 9_000) }),
  },
);
const history = fc.record({
  steps: fc.array(step, { minLength: 8, maxLength: 35, size: "max" }),
  mayReorganise: fc.boolean(),
  /** Delays of successive messages between nodes and the store, in milliseconds. */
  delaysMs: fc.array(fc.constantFrom(0, 1, 5, 20, 60), { minLength: 1, maxLength: 12 }),
});
type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never;

/** Regressions: histories in which a client got wrong retained events, each with its cause. */
const examples: [History][] = [
  // An event was indexed after a SUBSCRIBE had found the end of the index and before its filter was in use: it came neither as retained nor as published.
  [
    {
      steps: [
        { kind: "answer", who: 1, count: 3 },
        { kind: "publish", node: 0, topic: "a", isEmpty: false },
        { kind: "wait", ms: 20 },
        { kind: "connect", who: 0, node: 1, windowMax: 4, ms: 3_000 },
        { kind: "connect", who: 0, node: 2, windowMax: 1, ms: 0 },
        { kind: "subscribe", who: 1, ms: 30 },
        { kind: "wait", ms: 2_000 },
        { kind: "subscribe", who: 0, ms: 30 },
        { kind: "publish", node: 1, topic: "b", isEmpty: false },
      ],
      mayReorganise: false,
      delaysMs: [1, 1, 5, 60, 20, 60, 20, 1, 20, 5, 20],
    },
  ],
];

/** A connection whose packets wait until the client reads them. */
class WaitingPeer implements Peer {
  readonly packets: (Delivery | Ticket)[] = [];
  readonly hasRoom = true;
  isEnded = false;

  deliver(delivery: Delivery): void {
    this.packets.push(delivery);
  }

  release(ticket: Ticket): void {
    this.packets.push(ticket);
  }

  ended(): void {
    this.isEnded = true;
  }
}

/** Time, in milliseconds, within which a node that works stores a session that has changed. */
const storedAfterMs = 1_000;

/** A client with a lasting session and QoS 2 that records the events it accepts. */
class Client {
  readonly #cluster: TestCluster;
  readonly #key: string;
  /** Texts of the accepted events, in order. */
  readonly accepted: string[] = [];
  /** Texts of the events whose tickets the broker has not released. */
  readonly #held = new Map<Ticket, string>();
  #peer = new WaitingPeer();
  #attachment: Attachment | undefined;
  #node: TestNode | undefined;
  /** Number of SUBSCRIBE packets sent. */
  subscribes = 0;
  isSubscribed = false;
  /**
   * Whether the rest of the retained events may be lost, as docs/mqtt.md says: the client's node was in trouble after a SUBSCRIBE, or the client moved before
   * the node stored the session.
   */
  isShaken = false;
  /**
   * Whether the chain has reorganised. A node that was killed before it stored the session may have delivered an event that the reorg removed; another event
   * may then get its ticket.
   */
  hasReorgs = false;
  #subscribedAt = Number.NEGATIVE_INFINITY;
  /** Number of publishes before the SUBACK. */
  since = 0;

  constructor(cluster: TestCluster, key: string) {
    this.#cluster = cluster;
    this.#key = key;
  }

  get isConnected(): boolean {
    return this.#attachment !== undefined && !this.#peer.isEnded && this.#node?.gate.isKilled === false;
  }

  /** Call it when a node gets into trouble. */
  shake(node: TestNode): void {
    if (this.#node === node && this.subscribes > 0) this.isShaken = true;
  }

  /** Connects to a node; returns after `ms` at the latest. Packets that the client has not read are lost. */
  async connect(at: number, windowMax: number, ms: number): Promise<void> {
    const found = this.#cluster.find(at);
    if (found === undefined) return;
    const hasMovedAtOnce = this.#node !== found && this.#cluster.clock.now() < this.#subscribedAt + storedAfterMs;
    if (hasMovedAtOnce) this.isShaken = true;
    const peer = new WaitingPeer();
    [this.#attachment, this.#peer, this.#node] = [undefined, peer, found];
    const request = { groupId: undefined, protocol: "MQTT", key: this.#key, isClean: false, will: undefined } as const;
    const attach = async (): Promise<void> => {
      const attachment = await found.broker.attach({ ...request, windowMax, expiryMs, onConnected: () => {} }, peer);
      if (this.#peer !== peer) {
        this.isShaken ||= this.subscribes > 0; // This connection took the session over, perhaps before the other node stored it.
        return attachment.detach({ expiryMs, isRegular: true });
      }
      this.#attachment = attachment;
      if (attachment.isPresent) return;
      this.#held.clear();
      this.isSubscribed = false;
    };
    await Promise.race([attach().catch(() => undefined), this.#cluster.clock.advance(ms)]);
  }

  async subscribe(ms: number, countPublished: () => number): Promise<void> {
    const attachment = this.#attachment;
    if (!this.isConnected || attachment === undefined || this.isSubscribed) return;
    this.subscribes += 1;
    const filter = { filter: parseTopicFilter("#"), qos: 2, retained: "always", identifier: undefined } as const;
    const send = async (): Promise<void> => {
      await attachment.subscribe([{ ...filter, isNoLocal: false, isRetainAsPublished: false }]);
      if (this.#attachment !== attachment) return;
      this.#subscribedAt = this.#cluster.clock.now();
      this.isSubscribed = true;
      this.since = countPublished();
    };
    await Promise.race([send().catch(() => undefined), this.#cluster.clock.advance(ms)]);
  }

  /** Reads one packet, and answers it. */
  answer(): boolean {
    const packet = this.isConnected ? this.#peer.packets.shift() : undefined;
    if (packet === undefined) return false;
    const session = this.#attachment?.session;
    const reply = (send: () => void): void => this.#node?.gate.receive(send);
    if (typeof packet === "number") {
      this.#held.delete(packet);
      reply(() => session?.acknowledge(packet));
      return true;
    }
    const { event, ticket = 0 } = packet;
    const text = textOf(event);
    const known = this.#held.get(ticket);
    if (known === undefined) this.accepted.push(text);
    else if (!this.hasReorgs) expect(text, `a repeat of ticket ${ticket}`).toBe(known);
    this.#held.set(ticket, text);
    reply(() => session?.receive(ticket));
    return true;
  }
}

class World {
  readonly cluster: TestCluster;
  readonly clients: readonly Client[];
  hasReorgs = false;
  #texts = 0;

  constructor(cluster: TestCluster) {
    this.cluster = cluster;
    this.clients = ["one", "two"].map((key) => new Client(cluster, key));
  }

  async take(one: History["steps"][number]): Promise<void> {
    const client = "who" in one ? this.clients[one.who] : undefined;
    if (one.kind === "wait") await this.cluster.clock.advance(one.ms);
    else if (one.kind === "publish") this.#submit(one.node, one.topic, one.isEmpty);
    else if (one.kind === "answer") for (let count = 0; count < one.count; count += 1) client?.answer();
    else if (one.kind === "connect") await client?.connect(one.node, one.windowMax, one.ms);
    else if (one.kind === "subscribe") await client?.subscribe(one.ms, () => this.#texts);
    else if (one.kind === "reorganise") this.#reorganise(one.depth, one.refill);
    else this.#applyTrouble(one.kind, one.node);
    await this.cluster.clock.advance(20);
  }

  /** Makes everything work again, and lets the clients accept all. */
  async finish(): Promise<void> {
    await this.cluster.recover(nodesMax, 40_000);
    for (let blocks = 0; blocks < 8; blocks += 1) this.cluster.chain.sealEmpty(); // The broker waits while the chain is shorter than the index.
    await this.cluster.clock.advance(40_000);
    for (const [index, client] of this.clients.entries()) {
      for (let tries = 0; !client.isConnected && tries < 5; tries += 1) await client.connect(index, 2, 3_000);
      await client.subscribe(3_000, () => this.#texts);
      expect([client.isConnected, client.isSubscribed]).toEqual([true, true]);
      for (let isIdle = false; !isIdle; ) {
        isIdle = true;
        await this.cluster.clock.advance(3_000);
        while (client.answer()) isIdle = false;
      }
    }
  }

  /** The newest event of each topic of the final chain. */
  newest(): readonly string[] {
    const { chain } = this.cluster;
    const newest = new Map<string, string>();
    for (let number = 0; number <= chain.head; number += 1) {
      for (const entry of chain.find(number)?.entries ?? []) {
        const events = entry.kind === "events-committed" ? decodeEvents(entry.events) : [];
        const topic = topics.find((name) => topicAddress(name) === entry.address) ?? "";
        for (const event of events) newest.set(topic, textOf({ topic, ...event }));
      }
    }
    return [...newest.values()];
  }

  #submit(at: number, topic: string, isEmpty: boolean): void {
    this.#texts += 1;
    const extensions = [
      ["svc-retain", "true"],
      ["svc-number", String(this.#texts)],
    ] as const;
    const content = new TextEncoder().encode(isEmpty ? "" : "full");
    try {
      this.cluster
        .find(at)
        ?.broker.submit({ topic, groupId: undefined, content, extensions, mayBeEmpty: true }, () => undefined);
    } catch (error) {
      // A node that has just been launched, or has lost its membership, refuses publishes.
      if (!isBrokerError(error, "chainUnreachable") && !isBrokerError(error, "storeUnreachable")) throw error;
    }
  }

  #reorganise(depth: number, refill: number): void {
    const { chain } = this.cluster;
    this.hasReorgs = true;
    for (const client of this.clients) client.hasReorgs = true;
    chain.cutBack(Math.max(topics.length, chain.head - depth));
    for (let times = 0; times < refill; times += 1)
      this.#submit(times % nodesMax, topics[times % topics.length] ?? "a", false);
  }

  #applyTrouble(kind: NodeTrouble, at: number): void {
    const found = applyTrouble(this.cluster, kind, at);
    const isWorse = kind !== "launch" && kind !== "resume" && kind !== "heal";
    if (found !== undefined && isWorse) for (const client of this.clients) client.shake(found);
  }
}

/** Topic and number of an event. The number of an event that removes the retained one is negative. */
function textOf({
  topic,
  content,
  extensions,
}: Pick<Delivery["event"], "content" | "extensions"> & { readonly topic: string }): string {
  const number = extensions.find(([key]) => key === "svc-number")?.[1];
  return `${topic} ${content.length === 0 ? "-" : ""}${number}`;
}

const topicOf = (text: string): string => text.split(" ")[0] ?? "";
const numberOf = (text: string): number => Math.abs(Number(text.split(" ")[1]));
const removes = (text: string): boolean => text.includes(" -");

async function check({ steps, mayReorganise, delaysMs }: History): Promise<void> {
  const delays = new MessageDelays(delaysMs);
  const cluster = await TestCluster.start(nodesMax, {
    delayMs: delays.next,
    limits: { feedEventsMax: 3, readBatchesMax: 2 },
  });
  for (const topic of topics) await cluster.run(cluster.node(0).broker.open({ topic, groupId: undefined }));
  await cluster.clock.advance(1_000);
  const world = new World(cluster);
  delays.isOn = true;
  for (const one of steps) if (mayReorganise || one.kind !== "reorganise") await world.take(one);
  delays.isOn = false;
  await world.finish();
  const newest = world.newest();
  // After reorgs, skip these checks: tickets may have been reused, and clients may have retained events that a reorg removed.
  for (const { accepted, subscribes, since, isShaken } of world.hasReorgs ? [] : world.clients) {
    const due = newest.filter((text) => !isShaken || numberOf(text) > since);
    expect(accepted).toEqual(expect.arrayContaining(due.filter((text) => !removes(text))));
    const last = new Map(accepted.map((text) => [topicOf(text), text]));
    for (const text of due) expect([text, ...(removes(text) ? [undefined] : [])]).toContain(last.get(topicOf(text)));
    for (const text of accepted)
      expect(accepted.filter((other) => other === text).length, text).toBeLessThanOrEqual(subscribes);
  }
  const late = new Client(cluster, "late");
  await late.connect(0, 10, 3_000);
  await late.subscribe(3_000, () => 0);
  await cluster.clock.advance(3_000);
  while (late.answer());
  expect(late.accepted.toSorted()).toEqual(newest.filter((text) => !removes(text)).toSorted());
  await cluster.stopAll();
}

it(
  "a client that subscribes gets the newest retained event of each topic and later ones, each once with QoS 2, whichever nodes it uses and however they fail",
  async () => {
    await fc.assert(fc.asyncProperty(history, check), { numRuns: runs, examples });
  },
  60_000 * runs,
);
