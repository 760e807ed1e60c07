import { setTimeout as delay } from "node:timers/promises";
import type { Packet } from "mqtt-packet";
import { describe, expect, it } from "vitest";
import { Peer } from "../conformance/mqtt/peer.ts";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { createRandom, type Random, seedsOf } from "../harness/random.ts";
import { createTempFolder } from "../harness/temp-folder.ts";

const seeds = seedsOf("CHECKS_KILL_SEEDS", [20_261_124]);
const rounds = Number(process.env["CHECKS_KILL_ROUNDS"] ?? "4");
/** Longest wait between a packet to the broker and the kill, in milliseconds: short, to hit the broker between its write and its answer. */
const killDelayMsMax = 5;
/** Every wait has its own timeout. This one ends a test that hangs elsewhere. */
const timeoutMs = 60_000 * (rounds + 4);
const packetId = 1;

/**
 * Last packet of the publisher's exchange before the kill. `lost`: the publisher acts as if that packet never arrived, and repeats its own last packet.
 * `answer under way`: the client waits at most `killDelayMsMax` after the packet, so that the kill may come before the broker's answer.
 */
const publisherPoints = ["PUBREC, lost", "PUBREL, answer under way", "PUBCOMP", "PUBCOMP, lost"] as const;
/** Last packet of the subscriber's exchange before the kill. */
const subscriberPoints = ["PUBREC, answer under way", "PUBLISH", "PUBCOMP, answer under way", "PUBREL"] as const;

/** A broker that is killed and restarted on one data folder. */
class World implements AsyncDisposable {
  readonly #env: Record<string, string> = { STELE_LOG_LEVEL: "warn", STELE_MQTT_PORT: "0" };
  readonly #dataDir: string;
  broker: BrokerProcess;
  port = 0;

  private constructor(dataDir: string, broker: BrokerProcess) {
    this.#dataDir = dataDir;
    this.broker = broker;
  }

  static async start(dataDir: string): Promise<World> {
    const env = { STELE_LOG_LEVEL: "warn", STELE_MQTT_PORT: "0" };
    const world = new World(dataDir, await startBroker({ dataDir, env }));
    world.#readPort();
    return world;
  }

  async restart(): Promise<void> {
    await this.broker.kill();
    this.broker = await startBroker({ dataDir: this.#dataDir, env: this.#env });
    this.#readPort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.broker.kill();
  }

  #readPort(): void {
    const [, port] = /mqtt:\/\/\S+:(\d+)/.exec(this.broker.stderr()) ?? [];
    this.port = Number(port);
  }

  /** Connects a client that keeps its session. */
  async connect(clientId: string): Promise<Peer> {
    const addresses = { tcp: this.port, websocket: "" };
    const peer = await Peer.open(addresses, { transport: "tcp", version: 5 });
    const properties = { sessionExpiryInterval: 1_000 };
    peer.send({ cmd: "connect", clientId, clean: false, keepalive: 0, properties });
    await peer.next("connack");
    return peer;
  }
}

/** Always publishes the same content with the same packet identifier, so that the event count shows each duplicate and each lost packet. */
class Publisher {
  readonly #world: World;
  #peer: Peer | undefined;
  published = 0;

  constructor(world: World) {
    this.#world = world;
  }

  async connect(): Promise<void> {
    this.#peer = await this.#world.connect("publisher");
  }

  /** Publishes once, up to the point at which the test kills the broker. */
  async begin(point: (typeof publisherPoints)[number], killDelayMs: number): Promise<void> {
    this.published += 1;
    await this.#publish(false);
    if (point === "PUBREC, lost") return;
    this.#send({ cmd: "pubrel", messageId: packetId });
    if (point === "PUBREL, answer under way") await delay(killDelayMs);
    else await this.#next("pubcomp");
  }

  /** Completes the exchange after the kill, and then publishes once more. */
  async finish(point: (typeof publisherPoints)[number]): Promise<void> {
    await this.connect();
    if (point === "PUBREC, lost") await this.#publish(true);
    if (point !== "PUBCOMP") await this.#release();
    this.published += 1;
    await this.#publish(false);
    await this.#release();
  }

  async #publish(isRepeated: boolean): Promise<void> {
    this.#send({ cmd: "publish", topic: "in", payload: "same", qos: 2, messageId: packetId, dup: isRepeated });
    expect(await this.#next("pubrec")).toMatchObject({ reasonCode: 0 });
  }

  async #release(): Promise<void> {
    this.#send({ cmd: "pubrel", messageId: packetId });
    await this.#next("pubcomp");
  }

  #send(packet: object): void {
    this.#peer?.send(packet);
  }

  async #next(command: Packet["cmd"]): Promise<Packet> {
    const packet = await this.#peer?.next(command);
    if (packet === undefined) throw new Error("the publisher is not connected");
    return packet;
  }
}

/** Recognises a repeat by its packet identifier alone, which it forgets at PUBREL (MQTT 5.0, section 4.3.3). */
class Subscriber {
  readonly #world: World;
  #peer: Peer | undefined;
  readonly #held = new Set<number>();
  readonly accepted: string[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  async subscribe(): Promise<void> {
    this.#peer = await this.#world.connect("subscriber");
    this.#peer.send({ cmd: "subscribe", messageId: 1, subscriptions: [{ topic: "out", qos: 2 }] });
    await this.#peer.next("suback");
  }

  /** Receives packets up to the point at which the test kills the broker. */
  async receiveUntil(point: (typeof subscriberPoints)[number], killDelayMs: number): Promise<void> {
    for (;;) {
      const packet = await this.#next();
      if (packet.cmd === "publish") {
        this.#accept(packet);
        if (point === "PUBLISH") return;
        this.#peer?.send({ cmd: "pubrec", messageId: packet.messageId });
        if (point !== "PUBREC, answer under way") continue;
      } else if (packet.cmd === "pubrel") {
        this.#held.delete(packet.messageId ?? 0);
        if (point === "PUBREL") return;
        this.#peer?.send({ cmd: "pubcomp", messageId: packet.messageId });
      }
      await delay(killDelayMs);
      return;
    }
  }

  /** Continues after the kill until it has all events and the broker has nothing more to send. */
  async finish(count: number): Promise<void> {
    this.#peer = await this.#world.connect("subscriber");
    for (let isQuiet = false; !isQuiet || this.accepted.length < count || this.#held.size > 0; ) {
      this.#peer.send({ cmd: "pingreq" });
      for (let packet = await this.#next(); packet.cmd !== "pingresp"; packet = await this.#next())
        this.#answer(packet);
      isQuiet = this.accepted.length >= count;
    }
  }

  #answer(packet: Packet): void {
    if (packet.cmd === "publish") {
      this.#accept(packet);
      this.#peer?.send({ cmd: "pubrec", messageId: packet.messageId });
    } else if (packet.cmd === "pubrel") {
      this.#held.delete(packet.messageId ?? 0);
      this.#peer?.send({ cmd: "pubcomp", messageId: packet.messageId });
    }
  }

  #accept({ messageId = 0, payload, qos, dup }: Extract<Packet, { cmd: "publish" }>): void {
    expect(qos).toBe(2);
    if (this.#held.has(messageId)) {
      expect(dup, "DUP flag of a repeated packet").toBe(true); // [MQTT-3.3.1-1]
      return;
    }
    this.#held.add(messageId);
    this.accepted.push(payload.toString());
  }

  async #next(): Promise<Packet> {
    const packet = await this.#peer?.any();
    if (packet === undefined) throw new Error("the broker closed the connection of the subscriber");
    return packet;
  }
}

interface Round {
  readonly publisher: Publisher;
  readonly subscriber: Subscriber;
  readonly round: number;
  readonly random: Random;
}

async function runRound(world: World, { publisher, subscriber, round, random }: Round): Promise<void> {
  const publisherPoint = publisherPoints[round % publisherPoints.length] ?? publisherPoints[0];
  const subscriberPoint = subscriberPoints[round % subscriberPoints.length] ?? subscriberPoints[0];
  const killDelayMs = random.fraction() * killDelayMsMax;
  const deliver = async (): Promise<void> => {
    const published = new Client(world.broker.url).publish("out", String(round), { "svc-qos": "2" });
    published.catch(() => {}); // The kill may come before the answer.
    await subscriber.receiveUntil(subscriberPoint, killDelayMs);
  };
  // The kill follows right after the second exchange, so the two clients take turns at being second.
  const isSubscriberSecond = (round + Math.floor(round / publisherPoints.length)) % 2 === 1;
  if (!isSubscriberSecond) await deliver();
  await publisher.begin(publisherPoint, killDelayMs);
  if (isSubscriberSecond) await deliver();
  await world.restart();
  await publisher.finish(publisherPoint);
  await subscriber.finish(round + 1);
}

describe.each(seeds)("QoS 2 with kill -9 between two packets, seed %d", (seed) => {
  it(
    `QoS 2 publishes each packet once and delivers each event once, in ${rounds} rounds`,
    async () => {
      using folder = createTempFolder();
      await using world = await World.start(folder.path);
      const random = createRandom(seed);
      const publisher = new Publisher(world);
      const subscriber = new Subscriber(world);
      const client = new Client(world.broker.url);
      for (const topic of ["in", "out"]) await client.open(topic);
      await subscriber.subscribe();
      await publisher.connect();
      for (let round = 0; round < rounds; round += 1) await runRound(world, { publisher, subscriber, round, random });
      const { sequenceNumber } = await new Client(world.broker.url).state("in");
      expect(sequenceNumber).toBe(publisher.published);
      expect(subscriber.accepted).toEqual(Array.from({ length: rounds }, (_, number) => String(number)));
      expect((await world.broker.stop()).code).toBe(0);
    },
    timeoutMs,
  );
});
