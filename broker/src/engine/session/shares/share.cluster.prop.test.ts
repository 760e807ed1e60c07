import { isBrokerError } from "@stele/wire";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { Ticket } from "../../../domain/delivery-window.ts";
import { parseTopicFilter, type TopicFilter } from "../../../domain/topic-filter.ts";
import type { Attachment } from "../../broker.ts";
import { MessageDelays } from "../../testing/message-delays.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestCluster } from "../../testing/test-cluster.ts";

const runs = Math.ceil(40 * Number(process.env["CHECKS_ROUNDS"] ?? "0.5"));
const nodesMax = 3;
/** Time, in milliseconds, in which the other nodes notice that a node is gone and clean up after it. */
const goneMs = 40_000;
const shared = parseTopicFilter("$share/s/#");

const node = fc.nat(nodesMax - 1);
const who = fc.nat(3);
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("publish" as const), count: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("acknowledge" as const), who, which: fc.nat(9) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("attach" as const),
      who,
      node,
      windowMax: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom("leave" as const, "die" as const), who }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom("kill" as const, "cut" as const, "heal" as const), node }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("blip" as const),
      node,
      afterMs: fc.nat(150),
      ms: fc.constantFrom(20, 900),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("launch" as const), node }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("reorganise" as const), depth: fc.constant(2) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1, 60, 700, 9_000) }) },
);

/** Where the clients are when a history begins: most histories have members at two nodes that race for the same events. */
const begin = fc.tuple(...[0, 1, 2, 3].map((number) => fc.option(fc.record({ who: fc.constant(number), node }))));
const history = fc.record({
  /** Quality of service of events and members. */
  qos: fc.constantFrom(1 as const, 2 as const),
  begin,
  steps: fc.array(step, { minLength: 10, maxLength: 30, size: "max" }),
  /** Delays of successive messages between nodes and the store, in milliseconds. */
  delaysMs: fc.array(fc.constantFrom(0, 1, 10, 60), { minLength: 1, maxLength: 12 }),
});
type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never;

/** A client that may be a member of the share. Its connections come and go, at any node. */
class Client {
  readonly #key: string;
  readonly #filter: TopicFilter;
  readonly #qos: 1 | 2;
  #peer = new RecordingPeer();
  #attachment: Attachment | undefined;
  /** Every connection that the client had. If it fails to connect elsewhere, its earlier connection stays open. */
  readonly #all: Attachment[] = [];
  #attempts = 0;
  #seen = 0;
  #released = 0;
  /** Texts of the QoS 2 events that the client has received and the broker has not released, by ticket. They outlive connections. */
  readonly #received = new Map<Ticket, string>();
  node = -1;
  #hasJoined = false;
  /** Texts of the unacknowledged events of this connection. */
  readonly held = new Map<string, number>();
  /** Texts of the unacknowledged events that came after the latest reorg. The reorg may have removed the others, which another member then gets again. */
  readonly #certain = new Set<string>();

  constructor(key: string, qos: 1 | 2, filter = shared) {
    this.#key = key;
    this.#qos = qos;
    this.#filter = filter;
  }

  get isConnected(): boolean {
    return this.#attachment !== undefined && this.#peer.endedBecause === undefined;
  }

  /** Whether the client is a member with a connection, as far as it knows. */
  get isMember(): boolean {
    return this.isConnected && this.#hasJoined;
  }

  /** Connects to a node. Returns without a connection if the node refuses, or does not answer in time. */
  async attach(cluster: TestCluster, at: number, windowMax: number): Promise<void> {
    const { broker } = cluster.find(at) ?? {};
    if (broker === undefined) return;
    this.lose();
    const attempt = (this.#attempts += 1);
    const peer = new RecordingPeer();
    const request = { groupId: undefined, protocol: "MQTT", key: this.#key, isClean: false, will: undefined } as const;
    const rest = { windowMax, expiryMs: 1_000_000_000, onConnected: () => {} };
    const options = { qos: this.#qos, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
    const connecting = (async () => {
      const attachment = await broker.attach({ ...request, ...rest }, peer);
      this.#all.push(attachment);
      if (attempt !== this.#attempts) return; // The client has given up this connection.
      this.#attachment = attachment;
      this.#peer = peer;
      this.node = at;
      await attachment.subscribe([{ ...options, filter: this.#filter }]);
      this.#hasJoined = true;
    })().catch(() => undefined);
    await Promise.race([connecting, cluster.clock.advance(3_000)]);
  }

  /** Texts of the events that came since the last call. */
  collect(): readonly string[] {
    if (!this.isConnected) this.held.clear();
    const news = this.#peer.deliveries.slice(this.#seen);
    this.#seen = this.#peer.deliveries.length;
    if (!this.isConnected) return [];
    this.#complete();
    const texts = news.map(({ event, ticket = 0 }) => {
      const text = new TextDecoder().decode(event.content);
      this.#checkTicket(ticket, text);
      this.held.set(text, ticket);
      this.#certain.add(text);
      return text;
    });
    return texts;
  }

  /** Ends the exchange of each released ticket. */
  #complete(): void {
    for (const ticket of this.#peer.released.slice(this.#released)) {
      this.#received.delete(ticket);
      this.#attachment?.session.acknowledge(ticket);
    }
    this.#released = this.#peer.released.length;
  }

  /** A client treats an event as a repeat if it has the event's ticket, so the event must be the same. */
  #checkTicket(ticket: Ticket, text: string): void {
    const known = this.#received.get(ticket);
    if (known !== undefined) expect(text, `${this.#key} has ticket ${ticket}`).toBe(known);
  }

  /** Call it after a reorg, which may have removed the events that the client has. */
  doubt(): void {
    this.collect();
    this.#certain.clear();
  }

  has(text: string): boolean {
    return this.isConnected && this.held.has(text) && this.#certain.has(text);
  }

  /** Acknowledges an event, and returns its text. */
  acknowledge(which: number): string | undefined {
    const waiting = this.isConnected ? [...this.held] : [];
    const [text, ticket] = waiting[which % Math.max(1, waiting.length)] ?? [];
    if (text === undefined || ticket === undefined) return undefined;
    this.held.delete(text);
    if (this.#qos === 1) this.#attachment?.session.acknowledge(ticket);
    else {
      this.#received.set(ticket, text);
      this.#attachment?.session.receive(ticket);
    }
    return text;
  }

  async leave(): Promise<void> {
    this.#hasJoined = false;
    await this.#attachment?.unsubscribe([this.#filter]).catch(() => undefined);
  }

  die(): void {
    if (this.isConnected) this.#attachment?.detach({ expiryMs: 1_000_000_000, isRegular: true });
    this.lose();
  }

  /** Ends every connection but the newest, so that other members get the events of the ended ones. */
  hangUpFormer(): void {
    const leave = { expiryMs: 1_000_000_000, isRegular: true };
    for (const attachment of this.#all) if (attachment !== this.#attachment) attachment.detach(leave);
  }

  /** Forgets the connection: its node is gone, or the client dropped it. */
  lose(): void {
    this.#hasJoined = false;
    this.#attachment = undefined;
    this.#peer = new RecordingPeer();
    this.#seen = 0;
    this.#released = 0;
    this.held.clear();
  }
}

/** Runs a history. Returns the events of the final chain that no connected member acknowledged, and those that nobody acknowledged. */
async function run({ qos, begin: placed, steps, delaysMs }: History) {
  const delays = new MessageDelays(delaysMs);
  const cluster = await TestCluster.start(nodesMax, { delayMs: delays.next });
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  // The anchor is disconnected most of the time, and keeps the share alive.
  const anchor = new Client("anchor", qos);
  await anchor.attach(cluster, 0, 1);
  anchor.die();
  // The witness gets the events that are on the chain in the end.
  const witness = new Client("witness", 1, parseTopicFilter("#"));
  await witness.attach(cluster, 0, 1);
  witness.die();
  await cluster.clock.advance(1_000);
  const clients = [0, 1, 2, 3].map((number) => new Client(`client ${number}`, qos));
  const everybody = [anchor, ...clients];
  const acknowledged = new Set<string>();
  let count = 0;
  const look = (): void => {
    for (const client of everybody) {
      for (const text of client.collect()) {
        const holders = everybody.filter((one) => one.has(text));
        expect(holders, `${text} is with one member at a time`).toHaveLength(1);
      }
    }
  };
  const advance = async (ms: number): Promise<void> => {
    await cluster.clock.advance(ms);
    look();
  };
  const submit = (): void => {
    const publisher = cluster.nodes[0];
    if (publisher === undefined) return;
    const text = String((count += 1));
    const extensions = [["svc-qos", String(qos)]] as const;
    const call = { topic: "a", groupId: undefined, content: new TextEncoder().encode(text), extensions };
    try {
      publisher.broker.submit(call, () => undefined);
    } catch (error) {
      // A node that has just been launched, or has lost its membership, refuses publishes.
      if (!isBrokerError(error, "chainUnreachable") && !isBrokerError(error, "storeUnreachable")) throw error;
    }
  };
  const publish = async (): Promise<void> => {
    submit();
    await advance(200);
  };
  const acknowledgeAll = async (members: readonly Client[]): Promise<void> => {
    // With QoS 2, each second round only ends the exchanges of the round before.
    for (let idle = 0; idle < 2; ) {
      idle += 1;
      await advance(3_000);
      for (const member of members) {
        for (let text = member.acknowledge(0); text !== undefined; text = member.acknowledge(0)) {
          acknowledged.add(text);
          idle = 0;
        }
      }
    }
  };
  const lose = (index: number): void => {
    for (const client of everybody) if (client.node === index) client.lose();
  };
  delays.isOn = true;
  for (const one of placed) if (one !== null) await clients[one.who]?.attach(cluster, one.node, 2);
  for (const one of steps) {
    const client = "who" in one ? clients[one.who] : undefined;
    if (one.kind === "publish") for (let times = 0; times < one.count; times += 1) await publish();
    else if (one.kind === "attach") await client?.attach(cluster, one.node, one.windowMax);
    else if (one.kind === "die") client?.die();
    else if (one.kind === "leave") await Promise.race([client?.leave(), cluster.clock.advance(3_000)]);
    else if (one.kind === "acknowledge") {
      const text = client?.acknowledge(one.which);
      if (text !== undefined) acknowledged.add(text);
    } else if (one.kind === "wait") await advance(one.ms);
    else if (one.kind === "reorganise") {
      cluster.chain.cutBack(Math.max(1, cluster.chain.head - one.depth));
      for (let blocks = -1; blocks < one.depth; blocks += 1) cluster.chain.sealEmpty();
      await cluster.clock.advance(5_000);
      for (const each of everybody) each.doubt();
    } else if (one.kind === "launch") {
      if (cluster.find(one.node) === undefined) cluster.launch(one.node);
    } else if (one.kind === "kill" && cluster.find(one.node) !== undefined && cluster.nodes.length > 1) {
      lose(one.node);
      cluster.kill(one.node);
    } else if (one.kind === "cut") cluster.find(one.node)?.gate.cut("refused");
    else if (one.kind === "blip") {
      // The store may carry out a write whose answer the node does not get.
      submit();
      await advance(one.afterMs);
      cluster.find(one.node)?.gate.cut("refused");
      await advance(one.ms);
      cluster.find(one.node)?.gate.heal();
    } else if (one.kind === "heal") cluster.find(one.node)?.gate.heal();
    await advance(50);
  }
  delays.isOn = false;
  for (const { gate } of cluster.nodes) gate.heal();
  await advance(2 * goneMs);
  for (const client of clients) client.hangUpFormer();
  await advance(goneMs);
  const isJudged = clients.some(({ isMember }) => isMember);
  await acknowledgeAll(clients);
  const byMembers = new Set(acknowledged);
  const last = cluster.nodes[0]?.address === "node-0:1" ? 0 : cluster.find(1) === undefined ? 2 : 1;
  // An event of QoS 2 waits for the client that got it first.
  if (qos === 2) for (const client of clients) await client.attach(cluster, last, 3);
  await acknowledgeAll(clients);
  for (const client of clients) client.die();
  await anchor.attach(cluster, last, 3);
  await acknowledgeAll([anchor]);
  await witness.attach(cluster, last, 10_000);
  await cluster.clock.advance(10_000);
  const published = witness.collect();
  await cluster.stopAll();
  const waiting = isJudged && qos === 1 ? published.filter((text) => !byMembers.has(text)) : [];
  return { waiting, lost: published.filter((text) => !acknowledged.has(text)) };
}

it(
  "delivers each event of a share to one member at a time, and loses none, while members move between nodes and nodes fail",
  async () => {
    await fc.assert(
      fc.asyncProperty(history, async (one) => {
        expect(await run(one)).toEqual({ waiting: [], lost: [] });
      }),
      { numRuns: runs },
    );
  },
  60_000 * runs,
);
