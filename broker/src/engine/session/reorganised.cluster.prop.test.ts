import { isBrokerError } from "@stele/wire";
import fc from "fast-check";
import { expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { endOfBlock, positionZero } from "../../domain/position.ts";
import type { SessionFilter } from "../../domain/session-filter.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { eventsOf } from "../batch-events.ts";
import type { Attachment } from "../broker.ts";
import { MessageDelays } from "../testing/message-delays.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestCluster } from "../testing/test-cluster.ts";

const runs = Math.ceil(40 * Number(process.env["CHECKS_ROUNDS"] ?? "0.5"));
const nodesMax = 3;

const node = fc.nat(nodesMax - 1);
const who = fc.nat(4);
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("publish" as const), count: fc.integer({ min: 1, max: 3 }) }) },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("attach" as const), who, node, ms: fc.constantFrom(0, 30, 3_000) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("detach" as const), who }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("join" as const), who }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom("cut", "heal", "halt", "resume"), node }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("reorganise" as const),
      depth: fc.integer({ min: 1, max: 3 }),
      /** Events that take the places of removed ones. */
      refill: fc.nat(4),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1, 20, 60, 300, 2_000) }),
  },
);
const history = fc.record({
  steps: fc.array(step, { minLength: 8, maxLength: 25, size: "max" }),
  /** Delays of successive messages between nodes and the store, in milliseconds. */
  delaysMs: fc.array(fc.constantFrom(0, 1, 5, 20, 60), { minLength: 1, maxLength: 12 }),
});
type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never;

/** Regressions: histories in which clients missed events or lost a subscription, each with its cause. */
const examples: [History][] = [
  // A filter began at the end of an index that another node had rolled back.
  [
    {
      steps: [
        { kind: "reorganise", depth: 1, refill: 1 },
        { kind: "publish", count: 2 },
        { kind: "reorganise", depth: 2, refill: 0 },
        { kind: "attach", who: 0, node: 1, ms: 0 },
        { kind: "detach", who: 0 },
        { kind: "attach", who: 0, node: 0, ms: 0 },
        { kind: "publish", count: 1 },
        { kind: "detach", who: 0 },
        { kind: "publish", count: 2 },
        { kind: "reorganise", depth: 1, refill: 0 },
        { kind: "publish", count: 1 },
        { kind: "wait", ms: 1 },
      ],
      delaysMs: [5, 20, 0],
    },
  ],
  // A SUBSCRIBE came before the session's feed had followed the rollback.
  [
    {
      steps: [
        { kind: "publish", count: 1 },
        { kind: "publish", count: 1 },
        { kind: "reorganise", depth: 1, refill: 0 },
        { kind: "wait", ms: 1 },
        { kind: "attach", who: 0, node: 0, ms: 0 },
        { kind: "wait", ms: 2_000 },
        { kind: "attach", who: 0, node: 0, ms: 0 },
        { kind: "publish", count: 1 },
        { kind: "publish", count: 1 },
        { kind: "attach", who: 0, node: 0, ms: 0 },
        { kind: "cut", node: 0 },
      ],
      delaysMs: [60, 0, 0, 0, 0, 20, 60],
    },
  ],
  // A SUBSCRIBE wrote starts from before a rollback under the epoch from after it.
  [
    {
      steps: [
        { kind: "attach", who: 0, node: 0, ms: 0 },
        { kind: "reorganise", depth: 1, refill: 3 },
        { kind: "attach", who: 0, node: 0, ms: 3_000 },
        { kind: "attach", who: 0, node: 1, ms: 0 },
        { kind: "reorganise", depth: 1, refill: 0 },
        { kind: "reorganise", depth: 1, refill: 2 },
        { kind: "wait", ms: 1 },
        { kind: "wait", ms: 20 },
        { kind: "wait", ms: 20 },
        { kind: "heal", node: 0 },
        { kind: "publish", count: 1 },
        { kind: "detach", who: 0 },
        { kind: "detach", who: 0 },
        { kind: "reorganise", depth: 1, refill: 0 },
        { kind: "publish", count: 1 },
      ],
      delaysMs: [60, 5],
    },
  ],
  // A session continued from an outdated row: the store read it before a rollback, and the node got it afterwards.
  [
    {
      steps: [
        { kind: "publish", count: 2 },
        { kind: "publish", count: 1 },
        { kind: "detach", who: 0 },
        { kind: "detach", who: 0 },
        { kind: "attach", who: 0, node: 0, ms: 0 },
        { kind: "wait", ms: 20 },
        { kind: "reorganise", depth: 1, refill: 1 },
        { kind: "attach", who: 2, node: 0, ms: 3_000 },
        { kind: "attach", who: 3, node: 1, ms: 30 },
        { kind: "publish", count: 3 },
        { kind: "detach", who: 2 },
        { kind: "reorganise", depth: 1, refill: 4 },
        { kind: "wait", ms: 300 },
        { kind: "attach", who: 2, node: 1, ms: 3_000 },
        { kind: "publish", count: 1 },
        { kind: "cut", node: 0 },
        { kind: "attach", who: 0, node: 1, ms: 3_000 },
        { kind: "reorganise", depth: 2, refill: 2 },
      ],
      delaysMs: [60, 0, 0, 20, 1, 60, 1, 5],
    },
  ],
  // A STOMP subscription that ends with its connection has a row without filters. A node concluded that another node had removed the filters.
  [
    {
      steps: [
        { kind: "attach", who: 4, node: 0, ms: 3_000 },
        { kind: "publish", count: 2 },
        { kind: "reorganise", depth: 1, refill: 1 },
        { kind: "wait", ms: 2_000 },
      ],
      delaysMs: [0],
    },
  ],
  // A session that joined a share wrote a state that was ahead of the index, because its node had yet to follow a rollback.
  [
    {
      steps: [
        { kind: "attach", who: 2, node: 1, ms: 0 },
        { kind: "reorganise", depth: 1, refill: 1 },
        { kind: "wait", ms: 300 },
        { kind: "resume", node: 0 },
        { kind: "reorganise", depth: 1, refill: 0 },
        { kind: "wait", ms: 1 },
        { kind: "join", who: 0 },
        { kind: "join", who: 2 },
        { kind: "wait", ms: 1 },
        { kind: "wait", ms: 1 },
        { kind: "wait", ms: 1 },
        { kind: "reorganise", depth: 1, refill: 1 },
        { kind: "wait", ms: 1 },
      ],
      delaysMs: [1, 60, 0],
    },
  ],
];

/** A client that acknowledges every event with a ticket at once. */
class Client {
  readonly #key: string;
  readonly #expiryMs: number;
  /** Whether it has one STOMP subscription without an identifier of its own, instead of an MQTT session. */
  readonly #isPlain: boolean;
  #connections = 0;
  #isRemoved = false;
  #peer = new RecordingPeer();
  #attachment: Attachment | undefined;
  #seen = 0;
  readonly #got = new Set<string>();
  /** Number of publishes before the session's first SUBACK; undefined if there was none, or if the session has ended. */
  #since: number | undefined;

  constructor(key: string, expiryMs: number, isPlain = false) {
    this.#key = key;
    this.#expiryMs = expiryMs;
    this.#isPlain = isPlain;
  }

  get isConnected(): boolean {
    return this.#attachment !== undefined && this.#peer.endedBecause === undefined;
  }

  /** Connects and subscribes; returns after `ms` at the latest. */
  async attach(
    cluster: TestCluster,
    at: number,
    { ms, countPublished }: { readonly ms: number; readonly countPublished: () => number },
  ): Promise<void> {
    this.#lose();
    const peer = this.#peer;
    const connecting = (async () => {
      await this.#connect(cluster.node(at).broker, peer);
      if (this.#peer === peer && this.isConnected) this.#since ??= countPublished();
    })();
    await Promise.race([connecting.catch(() => undefined), cluster.clock.advance(ms)]);
  }

  /** Joins a share that matches no event, without waiting for the answer. A session that ends with its connection is stored from then on. */
  join(): void {
    if (!this.isConnected || this.#isPlain) return;
    this.#attachment?.subscribe([toFilter("$share/s/none")]).catch(() => undefined);
  }

  detach(): void {
    this.collect();
    if (this.isConnected) this.#attachment?.detach({ expiryMs: this.#expiryMs, isRegular: true });
    this.#lose();
  }

  collect(): void {
    const news = this.#peer.deliveries.slice(this.#seen);
    this.#seen = this.#peer.deliveries.length;
    for (const { event, ticket } of news) {
      this.#got.add(new TextDecoder().decode(event.content));
      if (this.isConnected && ticket !== undefined) this.#attachment?.session.acknowledge(ticket);
    }
    if (this.#peer.endedBecause === "removed") this.#isRemoved = true;
    if (this.#expiryMs === 0 && this.#peer.endedBecause !== undefined) this.#since = undefined;
  }

  /**
   * The events that the client lacks: those published after the session's first SUBACK, or none while it is not connected. Also names its subscription if the
   * broker has removed it, since nobody asked for that.
   */
  missing(onChain: readonly string[]): readonly string[] {
    const { isConnected } = this;
    const since = isConnected ? (this.#since ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
    const texts = onChain.filter((text) => Number(text) > since && !this.#got.has(text));
    return [...texts, ...(this.#isRemoved ? ["its subscription"] : [])].map((text) => `${this.#key}: ${text}`);
  }

  async #connect(broker: TestCluster["nodes"][number]["broker"], peer: RecordingPeer): Promise<void> {
    this.#connections += 1;
    const named = this.#isPlain
      ? { protocol: "STOMP" as const, key: toUuid(this.#connections), stream: plainStream }
      : { protocol: "MQTT" as const, key: this.#key };
    const rest = { will: undefined, windowMax: 4, expiryMs: this.#expiryMs, onConnected: () => {} };
    const request = { groupId: undefined, isClean: this.#expiryMs === 0, ...named, ...rest };
    const attachment = await broker.attach(request, peer);
    if (this.#peer !== peer) return attachment.detach({ expiryMs: this.#expiryMs, isRegular: true });
    this.#attachment = attachment;
    if (!attachment.isPresent) this.#since = undefined;
    if (this.#isPlain) return;
    await attachment.subscribe([toFilter("#")]);
  }

  /** Forgets the connection. */
  #lose(): void {
    this.collect();
    if (this.#expiryMs === 0) this.#since = undefined;
    this.#attachment = undefined;
    this.#peer = new RecordingPeer();
    this.#seen = 0;
  }
}

function toFilter(text: string): SessionFilter {
  const filter = parseTopicFilter(text);
  return { filter, qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined };
}

const plainStream = { filters: ["#"], acknowledges: false, offset: undefined };

function toUuid(number: number): string {
  return `00000000-0000-4000-9000-${String(number).padStart(12, "0")}`;
}

/** A cluster, its clients, and the number of publishes. The text of each event is the number of its publish. */
class World {
  readonly cluster: TestCluster;
  readonly clients = [
    new Client("a", 1e9),
    new Client("b", 1e9),
    new Client("clean a", 0),
    new Client("clean b", 0),
    new Client("plain", 0, true),
  ];
  #published = 0;

  constructor(cluster: TestCluster) {
    this.cluster = cluster;
  }

  submit(): void {
    const { broker } = this.cluster.node(this.#published % nodesMax);
    this.#published += 1;
    const content = new TextEncoder().encode(String(this.#published));
    try {
      broker.submit({ topic: "a", groupId: undefined, content, extensions: [] }, () => undefined);
    } catch (error) {
      // A node that has just been launched, or has lost its membership, refuses publishes.
      if (!isBrokerError(error, "chainUnreachable") && !isBrokerError(error, "storeUnreachable")) throw error;
    }
  }

  async advance(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 20) {
      await this.cluster.clock.advance(Math.min(20, left));
      for (const client of this.clients) client.collect();
    }
  }

  async attach(client: Client, at: number, ms: number): Promise<void> {
    await client.attach(this.cluster, at, { ms, countPublished: () => this.#published });
  }

  async take(one: History["steps"][number]): Promise<void> {
    const { chain } = this.cluster;
    const client = "who" in one ? this.clients[one.who] : undefined;
    if (one.kind === "publish") {
      for (let times = 0; times < one.count; times += 1) {
        this.submit();
        await this.advance(40);
      }
    } else if (one.kind === "attach") {
      if (client !== undefined) await this.attach(client, one.node, one.ms);
    } else if (one.kind === "detach") client?.detach();
    else if (one.kind === "join") client?.join();
    else if (one.kind === "wait") await this.advance(one.ms);
    else if (one.kind === "reorganise") {
      chain.cutBack(Math.max(2, chain.head - one.depth));
      for (let times = 0; times < one.refill; times += 1) this.submit();
    } else {
      const { gate } = this.cluster.node(one.node);
      if (one.kind === "cut") gate.cut("refused");
      else if (one.kind === "heal") gate.heal();
      else if (one.kind === "halt") gate.halt();
      else gate.resume();
    }
    await this.advance(20);
  }

  /** Lets everything work again, and connects the clients whose sessions last. */
  async recover(): Promise<void> {
    for (const { gate } of this.cluster.nodes) {
      gate.resume();
      gate.heal();
    }
    await this.advance(3_000);
    for (let blocks = 0; blocks < 8; blocks += 1) this.cluster.chain.sealEmpty(); // The broker waits while the chain is shorter than the index.
    await this.advance(20_000);
    for (const client of this.clients.slice(0, 2)) if (!client.isConnected) await this.attach(client, 0, 3_000);
    await this.advance(30_000);
  }

  /** Texts of the events on the chain. */
  async onChain(): Promise<readonly string[]> {
    const range = { after: positionZero, upTo: endOfBlock(1_000_000), topic: undefined };
    const limits = { batchesMax: 10_000, bytesMax: 1 << 30 };
    const batches = await this.cluster.shared.store.readBatches(defaultGroupId, { ...range, ...limits });
    return batches.flatMap((batch) => eventsOf(batch)).map(({ content }) => new TextDecoder().decode(content));
  }
}

/** Runs a history. Returns the events that a client missed. */
async function run({ steps, delaysMs }: History): Promise<readonly string[]> {
  const delays = new MessageDelays(delaysMs);
  const cluster = await TestCluster.start(nodesMax, { delayMs: delays.next });
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  await cluster.clock.advance(1_000);
  const world = new World(cluster);
  delays.isOn = true;
  for (const one of steps) await world.take(one);
  delays.isOn = false;
  await world.recover();
  const onChain = await world.onChain();
  const missing = world.clients.flatMap((client) => client.missing(onChain));
  await cluster.stopAll();
  return missing;
}

it(
  "a client keeps its subscription and misses no event that stays on the chain, however often the chain is reorganised and whichever node it connects to",
  async () => {
    await fc.assert(
      fc.asyncProperty(history, async (one) => {
        expect(await run(one)).toEqual([]);
      }),
      { numRuns: runs, examples },
    );
  },
  60_000 * runs,
);
