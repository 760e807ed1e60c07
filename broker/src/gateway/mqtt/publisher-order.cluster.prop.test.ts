import fc from "fast-check";
import { expect, it } from "vitest";
import type { Attachment } from "../../engine/broker.ts";
import type { EndReason, Peer } from "../../engine/session/peer.ts";
import { MessageDelays } from "../../engine/testing/message-delays.ts";
import { contentsOnChain } from "../../engine/testing/contents-on-chain.ts";
import { testCaller } from "../../engine/testing/as-caller.ts";
import { TestCluster } from "../../engine/testing/test-cluster.ts";
import type { PublishPacket } from "./codec/packet.ts";
import { type Answer, Inbound } from "./inbound.ts";

const runs = Math.ceil(25 * Number(process.env["CHECKS_ROUNDS"] ?? "0.5"));
const nodesMax = 3;
const windowMax = 6;
/** Time, in milliseconds, within which the other nodes notice that a node is gone. */
const goneMs = 40_000;

const node = fc.nat(nodesMax - 1);
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("publish" as const), count: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("connect" as const), node }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("blip" as const), node, ms: fc.constantFrom(0, 5, 20, 900, 9_000) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("kill" as const, "launch" as const), node }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1, 20, 700, 3_000) }) },
);
const history = fc.record({
  steps: fc.array(step, { minLength: 10, maxLength: 40, size: "max" }),
  /** Delays of successive messages between nodes and the store, in milliseconds. */
  delaysMs: fc.array(fc.constantFrom(0, 1, 10, 60), { minLength: 1, maxLength: 12 }),
});

interface Message {
  readonly text: string;
  isReceived: boolean;
}

/** A client that publishes with QoS 2, several messages at a time. Over each new connection it repeats its unanswered messages in order. */
class Publisher {
  readonly #cluster: TestCluster;
  /** The exchanges that have not ended, by packet identifier, in order. */
  readonly #open = new Map<number, Message>();
  /** Texts of all messages that the broker did not refuse, in order. */
  readonly sent = new Set<string>();
  #count = 0;
  #connection: Connection | undefined;

  constructor(cluster: TestCluster) {
    this.#cluster = cluster;
  }

  get isIdle(): boolean {
    return this.#open.size === 0;
  }

  publish(): void {
    if (this.#connection === undefined || this.#open.size >= windowMax) return;
    this.#count += 1;
    let packetId = 1;
    while (this.#open.has(packetId)) packetId += 1;
    const message = { text: String(this.#count), isReceived: false };
    this.#open.set(packetId, message);
    this.sent.add(message.text);
    this.#connection.publish(packetId, message.text, { isDuplicate: false });
  }

  lose(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }

  async connect(at: number): Promise<void> {
    this.lose();
    const found = this.#cluster.find(at);
    if (found === undefined) return;
    const connecting = Connection.open(this.#cluster, at, {
      answered: (answer) => this.#answered(answer),
      released: (packetId) => this.#open.delete(packetId),
    });
    const connection = await Promise.race([connecting.catch(() => undefined), this.#cluster.clock.advance(3_000)]);
    if (!(connection instanceof Connection)) return;
    this.#connection = connection;
    for (const [packetId, { text, isReceived }] of this.#open) {
      if (isReceived) connection.release(packetId);
      else connection.publish(packetId, text, { isDuplicate: true });
    }
  }

  #answered({ packetId, error }: Answer): void {
    const message = this.#open.get(packetId);
    if (message === undefined) return;
    if (error !== undefined) {
      this.#open.delete(packetId);
      this.sent.delete(message.text);
      return;
    }
    message.isReceived = true;
    this.#connection?.release(packetId);
  }
}

interface Answers {
  readonly answered: (answer: Answer) => void;
  readonly released: (packetId: number) => void;
}

/** One connection. It takes one packet after the other, as the gateway does. */
class Connection implements Peer {
  readonly hasRoom = true;
  #inbound: Inbound | undefined;
  #attachment: Attachment | undefined;
  #isEnded = false;
  #taken: Promise<void> = Promise.resolve();

  static async open(cluster: TestCluster, at: number, answers: Answers): Promise<Connection> {
    const { calls } = cluster.node(at);
    const connection = new Connection();
    const request = { groupId: undefined, protocol: "MQTT", key: "p", isClean: false, will: undefined } as const;
    const rest = { windowMax: 1, expiryMs: 1_000_000_000, onConnected: () => {} };
    const attachment = await calls.attach(testCaller, { ...request, ...rest }, connection);
    connection.#attachment = attachment;
    const whenOpen =
      <Value>(handle: (value: Value) => void) =>
      (value: Value): void =>
        connection.#isEnded ? undefined : handle(value);
    connection.#inbound = new Inbound({
      broker: calls,
      caller: testCaller,
      opener: { isAutomatic: false, count: () => {} } as never, // The topic is open.
      session: attachment.session,
      groupId: undefined,
      settings: { extensionPrefix: "svc-", receiveMax: 2 * windowMax, topicAliasMax: 0, qos0: "commit" },
      knowsReceiveMax: true,
      onAnswer: whenOpen(answers.answered),
      onReleased: whenOpen(({ packetId }) => answers.released(packetId)),
      onUnknown: () => connection.close(),
      onLost: () => {},
    });
    return connection;
  }

  publish(packetId: number, text: string, { isDuplicate }: Pick<PublishPacket, "isDuplicate">): void {
    const fields = { topic: "a", payload: Buffer.from(text), qos: 2, isRetained: false, properties: {} } as const;
    this.#take(() => this.#inbound?.take({ type: "publish", packetId, isDuplicate, ...fields }));
  }

  release(packetId: number): void {
    this.#take(() => this.#inbound?.release(packetId));
  }

  close(): void {
    if (this.#isEnded) return;
    this.ended();
    this.#attachment?.detach({ expiryMs: 1_000_000_000, isRegular: true });
  }

  deliver(): void {}

  ended(_why?: EndReason): void {
    this.#isEnded = true;
    this.#inbound?.close();
  }

  #take(packet: () => Promise<void> | undefined): void {
    this.#taken = this.#taken.then(() => (this.#isEnded ? undefined : packet()));
  }
}

it(
  "commits the QoS 2 messages of a client once and in order, whichever nodes it uses and however the nodes lose the store",
  async () => {
    await fc.assert(
      fc.asyncProperty(history, async ({ steps, delaysMs }) => {
        const delays = new MessageDelays(delaysMs);
        const cluster = await TestCluster.start(nodesMax, { delayMs: delays.next });
        await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
        const publisher = new Publisher(cluster);
        delays.isOn = true;
        await publisher.connect(0);
        for (const one of steps) {
          if (one.kind === "publish") for (let count = 0; count < one.count; count += 1) publisher.publish();
          else if (one.kind === "connect") await publisher.connect(one.node);
          else if (one.kind === "wait") await cluster.clock.advance(one.ms);
          else if (one.kind === "launch") {
            if (cluster.find(one.node) === undefined) cluster.launch(one.node);
          } else if (one.kind === "kill") {
            if (cluster.find(one.node) !== undefined && cluster.nodes.length > 1) cluster.kill(one.node);
          } else if (one.kind === "blip") {
            cluster.find(one.node)?.gate.cut("refused");
            await cluster.clock.advance(one.ms);
            cluster.find(one.node)?.gate.heal();
          }
          await cluster.clock.advance(10);
        }
        delays.isOn = false;
        await cluster.recover(nodesMax, 2 * goneMs);
        for (let tries = 0; !publisher.isIdle && tries < 10; tries += 1) {
          await publisher.connect(tries % nodesMax);
          await cluster.clock.advance(goneMs);
        }
        expect(publisher.isIdle).toBe(true);
        expect(contentsOnChain(cluster)).toEqual([...publisher.sent]);
        await cluster.stopAll();
      }),
      { numRuns: runs },
    );
  },
  20_000 * runs,
);
