import fc from "fast-check";
import { expect, it } from "vitest";
import type { Ticket } from "../../domain/delivery-window.ts";
import type { QoS } from "../../domain/session-filter.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import type { Attachment, PublishCall, PublishOutcome } from "../broker.ts";
import { MessageDelays } from "../testing/message-delays.ts";
import type { CalledBroker } from "../testing/as-caller.ts";
import { contentsOnChain } from "../testing/contents-on-chain.ts";
import { applyTrouble, type NodeTrouble } from "../testing/node-troubles.ts";
import { TestCluster } from "../testing/test-cluster.ts";
import type { Delivery, EndReason, Peer } from "./peer.ts";

const runs = Math.ceil(25 * Number(process.env["CHECKS_ROUNDS"] ?? "0.5"));
const nodesMax = 3;
const topics = ["a", "b"] as const;
const expiryMs = 1_000_000_000;
/** Time, in milliseconds, in which the other nodes notice that a node is gone and take over its work. */
const goneMs = 40_000;

const node = fc.nat(nodesMax - 1);
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("publish" as const), topic: fc.constantFrom(...topics) }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("answer" as const), count: fc.integer({ min: 1, max: 3 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("move" as const), node, windowMax: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("publisher moves" as const), node }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom("kill" as const, "kill", "launch", "launch", "halt", "resume", "refuse", "silence", "heal"),
      node,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1, 20, 60, 700, 9_000) }),
  },
);
const history = fc.record({
  steps: fc.array(step, { minLength: 10, maxLength: 40, size: "max" }),
  qos: fc.constantFrom<QoS>(1, 2),
  /** Delays of successive messages between nodes and the store, in milliseconds. */
  delaysMs: fc.array(fc.constantFrom(0, 1, 10, 60), { minLength: 1, maxLength: 12 }),
  /** Time that passes after each step, in milliseconds. */
  gapsMs: fc.array(fc.constantFrom(0, 1, 10, 60, 200), { minLength: 1, maxLength: 12 }),
});
type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never;

type Packet = { readonly release: Ticket } | { readonly delivery: Delivery };

/** A connection whose packets wait until the client reads them. */
class WaitingPeer implements Peer {
  readonly packets: Packet[] = [];
  readonly hasRoom = true;
  isEnded = false;

  deliver(delivery: Delivery): void {
    this.packets.push({ delivery });
  }

  release(ticket: Ticket): void {
    this.packets.push({ release: ticket });
  }

  ended(_why: EndReason): void {
    this.isEnded = true;
  }
}

/** A client with a lasting session, which connects to one node after the other. */
class Client {
  readonly cluster: TestCluster;
  readonly #key: string;
  peer = new WaitingPeer();
  attachment: Attachment | undefined;
  node = -1;

  constructor(cluster: TestCluster, key: string) {
    this.cluster = cluster;
    this.#key = key;
  }

  get isConnected(): boolean {
    return this.attachment !== undefined && !this.peer.isEnded;
  }

  /** Drops the client's connection, and the packets that the client has not read. */
  lose(): void {
    this.attachment = undefined;
    this.peer = new WaitingPeer();
    this.node = -1;
  }

  /** Connects to a node. Returns without a connection if the node refuses, or does not answer in time. If there is no node, the earlier connection stays. */
  async connect(at: number, windowMax = 10): Promise<"tried" | "no node"> {
    const { broker } = this.cluster.find(at) ?? {};
    if (broker === undefined) return "no node";
    this.lose();
    const peer = new WaitingPeer();
    const request = { groupId: undefined, protocol: "MQTT", key: this.#key, isClean: false, will: undefined } as const;
    const attach = async (): Promise<void> => {
      this.attachment = await broker.attach({ ...request, windowMax, expiryMs, onConnected: () => {} }, peer);
      this.peer = peer;
      this.node = at;
    };
    await Promise.race([attach().catch(() => undefined), this.cluster.clock.advance(3_000)]);
    return "tried";
  }
}

/** Accepts events of QoS 1 or 2. It recognizes a repeat of QoS 2 only by the packet identifier, which it forgets at the release. */
class Subscriber extends Client {
  readonly accepted: string[] = [];
  readonly #held = new Set<Ticket>();

  async subscribe(qos: QoS): Promise<void> {
    const options = { qos, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
    const sessionFilters = ["a", "#"].map((text) => ({ ...options, filter: parseTopicFilter(text) }));
    await this.cluster.run(this.attachment?.subscribe(sessionFilters) ?? Promise.resolve([]));
  }

  /** Reads one packet, and answers it. */
  answer(): boolean {
    const packet = this.isConnected ? this.peer.packets.shift() : undefined;
    if (packet === undefined) return false;
    const session = this.attachment?.session;
    if ("release" in packet) {
      this.#held.delete(packet.release);
      session?.acknowledge(packet.release);
      return true;
    }
    const { event, qos, ticket = 0 } = packet.delivery;
    if (qos === 1 || !this.#held.has(ticket)) this.accepted.push(new TextDecoder().decode(event.content));
    if (qos === 1) {
      session?.acknowledge(ticket);
      return true;
    }
    this.#held.add(ticket);
    session?.receive(ticket);
    return true;
  }
}

interface Current {
  readonly call: PublishCall;
  isAnswered: boolean;
}

/** A packet in transit. */
interface Sent {
  readonly current: Current;
  readonly isRelease: boolean;
}

/** Publishes one message after the other with QoS 2, under two packet identifiers in turn, and repeats each until it is released. */
class Publisher extends Client {
  readonly published: string[] = [];
  #current: Current | undefined;
  #count = 0;

  get isBusy(): boolean {
    return this.#current !== undefined;
  }

  begin(topic: string): void {
    if (this.#current !== undefined) return;
    this.#count += 1;
    const text = String(this.#count);
    const content = new TextEncoder().encode(text);
    const key = String(1 + (this.#count % 2));
    const call = { topic, groupId: undefined, content, extensions: [["svc-qos", "2"]], key } as const;
    this.published.push(text);
    this.#current = { call, isAnswered: false };
    this.send();
  }

  /** Sends the unanswered packet again, as a client does after a lost connection. A halted node reads the packet when it resumes. */
  send(): void {
    const { attachment, peer, node: at } = this;
    const { gate, broker } = this.cluster.find(at) ?? {};
    const current = this.#current;
    if (current === undefined || attachment === undefined || broker === undefined || peer.isEnded) return;
    const isRelease = current.isAnswered;
    gate?.receive(() => (peer.isEnded ? undefined : this.#arrive({ current, isRelease }, attachment, broker)));
  }

  #arrive({ current, isRelease }: Sent, attachment: Attachment, broker: CalledBroker): void {
    const session = attachment.session.keys;
    const { key = "" } = current.call;
    const isHere = (): boolean => this.#current === current && this.attachment === attachment && this.isConnected;
    const release = async (): Promise<void> => {
      await broker.release({ groupId: undefined, session, key });
      if (isHere()) this.#current = undefined;
    };
    if (isRelease) {
      release().catch(() => undefined);
      return;
    }
    const settle = (outcome: PublishOutcome): void => {
      if (!isHere() || outcome.status !== "SUCCESS" || current.isAnswered) return;
      current.isAnswered = true;
      release().catch(() => undefined);
      expect(contentsOnChain(this.cluster), "an acknowledged publish is on the chain").toContain(this.published.at(-1));
    };
    try {
      broker.submit({ ...current.call, session }, settle);
    } catch {
      return; // The node is not up; the client sends the publish again later.
    }
  }
}

class World {
  readonly cluster: TestCluster;
  readonly subscriber: Subscriber;
  readonly publisher: Publisher;

  constructor(cluster: TestCluster) {
    this.cluster = cluster;
    this.subscriber = new Subscriber(cluster, "subscriber");
    this.publisher = new Publisher(cluster, "publisher");
  }

  async begin(qos: QoS): Promise<void> {
    for (const topic of topics) await this.cluster.run(this.cluster.node(0).broker.open({ topic, groupId: undefined }));
    await this.subscriber.connect(0);
    await this.subscriber.subscribe(qos);
    await this.publisher.connect(1);
  }

  async take(one: History["steps"][number]): Promise<void> {
    const { cluster, subscriber, publisher } = this;
    if (one.kind === "wait") await cluster.clock.advance(one.ms);
    else if (one.kind === "publish") publisher.begin(one.topic);
    else if (one.kind === "answer") for (let count = 0; count < one.count; count += 1) subscriber.answer();
    else if (one.kind === "move") await subscriber.connect(one.node, one.windowMax);
    else if (one.kind === "publisher moves") {
      // A client repeats no publish on the same connection.
      if ((await publisher.connect(one.node)) === "tried") publisher.send();
    } else this.#applyTrouble(one.kind, one.node);
  }

  #applyTrouble(kind: NodeTrouble, at: number): void {
    const found = applyTrouble(this.cluster, kind, at);
    if (found === undefined || kind !== "kill") return;
    for (const client of [this.subscriber, this.publisher]) if (client.node === at) client.lose();
  }

  /** Makes everything work again, and lets both clients finish. */
  async finish(): Promise<void> {
    const { cluster, subscriber, publisher } = this;
    await cluster.recover(nodesMax, 2 * goneMs);
    for (let tries = 0; publisher.isBusy && tries < 10; tries += 1) {
      await publisher.connect(tries % nodesMax);
      publisher.send();
      await cluster.clock.advance(goneMs);
    }
    expect(publisher.isBusy, "the publisher has every answer").toBe(false);
    await subscriber.connect(2, 2);
    for (let isIdle = false; !isIdle; ) {
      isIdle = true;
      await cluster.clock.advance(3_000);
      while (subscriber.answer()) isIdle = false;
    }
  }
}

it(
  "publishes each QoS 2 message once, and delivers each to QoS 2 once and in order, to QoS 1 at least once, whichever nodes the clients use and however the nodes fail",
  async () => {
    await fc.assert(
      fc.asyncProperty(history, async ({ steps, qos, delaysMs, gapsMs }) => {
        const delays = new MessageDelays(delaysMs);
        const cluster = await TestCluster.start(nodesMax, {
          delayMs: delays.next,
          limits: { feedEventsMax: 3, readBatchesMax: 2 },
        });
        const world = new World(cluster);
        await world.begin(qos);
        delays.isOn = true;
        for (const [index, one] of steps.entries()) {
          await world.take(one);
          await cluster.clock.advance(gapsMs[index % gapsMs.length] ?? 0);
        }
        delays.isOn = false;
        await world.finish();
        const onChain = contentsOnChain(cluster);
        expect(onChain).toEqual(world.publisher.published);
        const { accepted } = world.subscriber;
        if (qos === 2) expect(accepted).toEqual(onChain);
        else expect([...new Set(accepted)].toSorted(byNumber)).toEqual(world.publisher.published);
        await cluster.stopAll();
      }),
      { numRuns: runs },
    );
  },
  20_000 * runs,
);

function byNumber(left: string, right: string): number {
  return Number(left) - Number(right);
}
