import fc from "fast-check";
import { expect, it } from "vitest";
import type { Attachment } from "../../broker.ts";
import { MessageDelays } from "../../testing/message-delays.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { contentsOnChain } from "../../testing/contents-on-chain.ts";
import { applyTrouble, type NodeTrouble } from "../../testing/node-troubles.ts";
import { TestCluster, type TestNode } from "../../testing/test-cluster.ts";

const runs = Math.ceil(40 * Number(process.env["CHECKS_ROUNDS"] ?? "0.5"));
const nodesMax = 3;
/** Time in which the nodes notice a lost connection or node and settle its will, in milliseconds. */
const settledMs = 90_000;

const node = fc.nat(nodesMax - 1);
const who = fc.nat(1);
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("connect" as const),
      who,
      node,
      isClean: fc.constantFrom(false, false, true),
      delayMs: fc.constantFrom(0, 0, 500, 5_000, 30_000),
      expiryMs: fc.constantFrom(0, 1_000_000_000, 1_000_000_000),
      ms: fc.constantFrom(0, 100, 3_000),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constantFrom("drop" as const, "drop", "disconnect"), who }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom("kill" as const, "launch", "launch", "halt", "resume", "refuse", "silence", "heal", "heal"),
      node,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("wait" as const),
      ms: fc.constantFrom(1, 20, 60, 300, 2_000, 9_000, 40_000),
    }),
  },
);
const history = fc.record({
  steps: fc.array(step, { minLength: 8, maxLength: 30, size: "max" }),
  /** Delays of successive messages between nodes and the store, in milliseconds. */
  delaysMs: fc.array(fc.constantFrom(0, 1, 5, 20, 60), { minLength: 1, maxLength: 12 }),
});
type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never;
type Connect = Extract<History["steps"][number], { kind: "connect" }>;

/** Regressions: histories that published wrong wills, each with its cause. */
const examples: [History][] = [
  // The client came back while another node published the will: the end of the session dropped the name of that publish.
  [
    {
      steps: [
        connect({ ms: 3_000 }),
        connect({}),
        { kind: "drop", who: 0 },
        connect({ node: 1 }),
        { kind: "wait", ms: 1 },
        connect({ node: 1, who: 1 }),
        { kind: "drop", who: 0 },
        { kind: "launch", node: 0 },
        connect({ node: 1, ms: 100 }),
        { kind: "wait", ms: 20 },
        { kind: "wait", ms: 300 },
        { kind: "wait", ms: 60 },
      ],
      delaysMs: [1, 20, 60, 20, 60, 1],
    },
  ],
  // While publish keys were kept, the stored session time was late: the delay of a will at another node passed at once.
  [
    {
      steps: [
        connect({}),
        connect({}),
        connect({ who: 1, node: 1, delayMs: 5_000, expiryMs: 1_000_000_000 }),
        { kind: "wait", ms: 9_000 },
        { kind: "drop", who: 1 },
        { kind: "drop", who: 0 },
        { kind: "wait", ms: 1 },
        connect({ who: 1 }),
        { kind: "wait", ms: 1 },
        { kind: "wait", ms: 1 },
        { kind: "launch", node: 0 },
        connect({}),
        { kind: "kill", node: 0 },
      ],
      delaysMs: [5],
    },
  ],
];

function connect(change: Partial<Connect>): Connect {
  return { kind: "connect", who: 0, node: 0, isClean: false, delayMs: 0, expiryMs: 0, ms: 0, ...change };
}

/** One connection, and how it ended. */
interface Connection {
  readonly order: Connect;
  readonly will: string;
  readonly node: TestNode;
  readonly beganAt: number;
  attachment: Attachment | undefined;
  /** When the client knew that it was connected; undefined if it never did. */
  acceptedAt: number | undefined;
  /** When the broker answered; undefined if it did not. */
  answeredAt: number | undefined;
  end: { readonly at: number; readonly how: "disconnected" | "dropped" | "taken over" } | undefined;
}

class World {
  readonly cluster: TestCluster;
  /** The connections of each client, in order. */
  readonly clients: readonly Connection[][] = [[], []];
  /** When a node was in trouble: halted, cut off or killed. */
  readonly #troubles: { readonly node: TestNode; readonly from: number; to: number }[] = [];
  #wills = 0;

  constructor(cluster: TestCluster) {
    this.cluster = cluster;
  }

  get #now(): number {
    return this.cluster.clock.now();
  }

  async take(one: History["steps"][number]): Promise<void> {
    if (one.kind === "wait") await this.cluster.clock.advance(one.ms);
    else if (one.kind === "connect") await this.#connect(one);
    else if ("who" in one) this.#leave(one.who, one.kind);
    else this.#applyTrouble(one.kind, one.node);
    await this.cluster.clock.advance(20);
  }

  /** Makes everything work again, loses all connections, and waits until all wills are settled. */
  async finish(): Promise<void> {
    for (const trouble of this.#troubles) trouble.to = Math.min(trouble.to, this.#now);
    await this.cluster.recover(nodesMax, settledMs);
    for (const index of this.clients.keys()) this.#leave(index, "drop");
    await this.cluster.clock.advance(settledMs);
  }

  async #connect(order: Connect): Promise<void> {
    const found = this.cluster.find(order.node);
    if (found === undefined) return;
    this.#wills += 1;
    const will = String(this.#wills);
    const peer = new RecordingPeer();
    const connection: Connection = {
      order,
      will,
      node: found,
      beganAt: this.#now,
      attachment: undefined,
      acceptedAt: undefined,
      answeredAt: undefined,
      end: undefined,
    };
    const connections = this.clients[order.who] ?? [];
    connections.push(connection);
    const call = { topic: "wills", groupId: undefined, content: new TextEncoder().encode(will), extensions: [] };
    const { delayMs, expiryMs, isClean } = order;
    const attach = async (): Promise<void> => {
      const attachment = await found.broker.attach(
        {
          groupId: undefined,
          protocol: "MQTT",
          key: `client ${order.who}`,
          isClean,
          windowMax: 10,
          expiryMs,
          will: { delayMs, call, opensTopic: false, expiresAfterMs: undefined },
          onConnected: () => {},
        },
        peer,
      );
      if (connections.at(-1) !== connection) return attachment.detach({ expiryMs, isRegular: false });
      connection.attachment = attachment;
      connection.acceptedAt = this.#now;
      const former = connections.at(-2);
      if (former !== undefined) former.end ??= { at: this.#now, how: "taken over" };
    };
    const attached = attach()
      .catch(() => undefined)
      .finally(() => (connection.answeredAt = this.#now));
    await Promise.race([attached, this.cluster.clock.advance(order.ms)]);
  }

  #leave(index: number, how: "drop" | "disconnect"): void {
    const connection = this.clients[index]?.at(-1);
    if (connection?.attachment === undefined || connection.end !== undefined) return;
    connection.end = { at: this.#now, how: how === "drop" ? "dropped" : "disconnected" };
    const { attachment, order } = connection;
    connection.node.gate.receive(() =>
      attachment.detach({ expiryMs: order.expiryMs, isRegular: how === "disconnect" }),
    );
  }

  #applyTrouble(kind: NodeTrouble, at: number): void {
    const found = applyTrouble(this.cluster, kind, at);
    if (found === undefined) return;
    if (kind === "kill") {
      for (const connections of this.clients) {
        const last = connections.at(-1);
        if (last?.node === found && last.acceptedAt !== undefined) last.end ??= { at: this.#now, how: "dropped" };
      }
    }
    if (kind === "halt" || kind === "refuse" || kind === "silence" || kind === "kill")
      this.#troubles.push({ node: found, from: this.#now, to: kind === "kill" ? this.#now : Number.POSITIVE_INFINITY });
    if (kind === "resume" || kind === "heal")
      for (const trouble of this.#troubles) if (trouble.node === found) trouble.to = Math.min(trouble.to, this.#now);
  }

  /** How often the will of a connection may be published. */
  expected(connections: readonly Connection[], index: number): readonly number[] {
    const connection = connections[index];
    if (connection?.acceptedAt === undefined || connection.end === undefined) return [0, 1];
    const { beganAt, acceptedAt, end, order, node: own } = connection;
    const later = connections.slice(index + 1);
    const [next] = later;
    // If an earlier will of the client still waits, this will is only in the memory of the next connection's node, and a kill of that node loses it.
    const mayBeLost = later.some((other) =>
      this.#isInTrouble(other.node, other.beganAt, (other.answeredAt ?? this.#now) + 5_000),
    );
    const once = index > 0 && mayBeLost ? [0, 1] : [1];
    // An attempt to connect that the client gave up may take the session over at any time.
    const isContested = connections.some(
      (other) => other.acceptedAt === undefined && (other.answeredAt ?? this.#now) > beganAt,
    );
    const isDoubtful = isContested || this.#isInTrouble(own, acceptedAt, end.at + 5_000);
    // A connection of another node may take the session over before the store knows that the client has left.
    const isOvertaken = later.some((other) => other.node !== own && other.beganAt < end.at + 1_000);
    if (end.how === "disconnected") return isDoubtful || isOvertaken ? [0, 1] : [0];
    if (end.how === "taken over") {
      if (next?.acceptedAt !== end.at || isDoubtful) return [0, 1];
      if (order.delayMs === 0 || next.order.isClean) return once;
      return order.expiryMs === 0 ? [0, 1] : [0];
    }
    if (isContested || (isDoubtful && !own.gate.isKilled)) return [0, 1];
    const delayMs = Math.min(order.delayMs, order.expiryMs);
    if (delayMs === 0 || next === undefined || later.every((other) => other.order.isClean)) return once;
    if (next.acceptedAt === undefined || isDoubtful) return [0, 1];
    if (next.order.isClean) return once;
    return next.acceptedAt < end.at + delayMs ? [0] : [0, 1];
  }

  #isInTrouble(one: TestNode, from: number, to: number): boolean {
    return this.#troubles.some((trouble) => trouble.node === one && trouble.from <= to && trouble.to >= from - 10_000);
  }
}

async function check({ steps, delaysMs }: History): Promise<void> {
  const delays = new MessageDelays(delaysMs);
  const cluster = await TestCluster.start(nodesMax, { delayMs: delays.next });
  await cluster.run(cluster.node(0).broker.open({ topic: "wills", groupId: undefined }));
  await cluster.clock.advance(1_000);
  const world = new World(cluster);
  delays.isOn = true;
  for (const one of steps) await world.take(one);
  delays.isOn = false;
  await world.finish();
  const published = contentsOnChain(cluster);
  for (const connections of world.clients) {
    for (const [index, { will, order, acceptedAt, end }] of connections.entries()) {
      const count = published.filter((text) => text === will).length;
      const times = { will, order, acceptedAt, end, count };
      expect(world.expected(connections, index), JSON.stringify(times)).toContain(count);
    }
  }
  await cluster.stopAll();
}

it(
  "publishes each will once if its client does not return in time, and never after a regular end, however the nodes fail",
  async () => {
    await fc.assert(fc.asyncProperty(history, check), { numRuns: runs, examples });
  },
  60_000 * runs,
);
