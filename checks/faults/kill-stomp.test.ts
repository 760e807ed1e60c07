import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { Peer } from "../conformance/stomp/peer.ts";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { createRandom, seedsOf } from "../harness/random.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";

const seeds = seedsOf("CHECKS_KILL_SEEDS", [20_261_124]);
const rounds = Number(process.env["CHECKS_KILL_ROUNDS"] ?? "2");
/** SENDs that one client has in flight. */
const window = 10;
const countUntilKillMax = 150;
const topics = ["load/a", "load/b"];
/** Durable subscriptions, each on its own connection, and the topics that each must receive. */
const durables = [
  { destination: "load/#", wanted: topics },
  { destination: "load/a", wanted: ["load/a"] },
  { destination: "load/b,load/a", wanted: topics },
  { destination: "+/b", wanted: ["load/b"] },
];
const timeoutMs = 60_000 * (rounds + 1);

/** Connects, with retries while the broker is down. */
async function connect(port: number): Promise<Peer> {
  for (;;) {
    try {
      const peer = await Peer.open({ tcp: port, websocket: "" }, { transport: "tcp", version: "1.2", cut: "frames" });
      peer.send("CONNECT", { "accept-version": "1.2", host: "localhost" });
      if ((await peer.any())?.command === "CONNECTED") return peer;
      peer.drop();
    } catch {
      await delay(50); // the broker was killed and is not back yet
    }
  }
}

/** Sends 0, 1, 2 … to one topic, and continues with new numbers after each kill. */
class Publisher {
  readonly topic: string;
  readonly acknowledged: number[] = [];
  isStopped = false;
  #next = 0;

  constructor(topic: string) {
    this.topic = topic;
  }

  async run(port: number): Promise<void> {
    while (!this.isStopped) await this.#talk(await connect(port));
  }

  async #talk(peer: Peer): Promise<void> {
    let open = 0;
    while (!this.isStopped || open > 0) {
      for (; open < window && !this.isStopped; open += 1) {
        peer.send("SEND", { destination: this.topic, receipt: String(this.#next) }, String(this.#next));
        this.#next += 1;
      }
      const answer = await peer.any();
      if (answer?.command !== "RECEIPT") break;
      this.acknowledged.push(Number(answer.headers["receipt-id"]));
      open -= 1;
    }
    peer.drop();
  }
}

/** A durable subscription that acknowledges each message individually, and reconnects after each kill. */
class Subscriber {
  readonly durable: (typeof durables)[number];
  readonly id = randomUUID();
  readonly received = new Map(topics.map((topic) => [topic, [] as number[]]));
  #peer: Peer | undefined;
  #isStopped = false;

  constructor(durable: (typeof durables)[number]) {
    this.durable = durable;
  }

  async run(port: number): Promise<void> {
    while (!this.#isStopped) {
      const peer = await connect(port);
      this.#peer = peer;
      if (this.#isStopped) peer.drop(); // `stop` came during `connect`
      const headers = { "svc-subscriptionId": this.id, ack: "client-individual" };
      peer.send("SUBSCRIBE", { id: "1", destination: this.durable.destination, eventId: "OFFSET_FIRST", ...headers });
      for (let frame = await peer.any(); frame !== undefined; frame = await peer.any()) {
        if (frame.command !== "MESSAGE") break;
        this.received.get(frame.headers["destination"] ?? "")?.push(Number(frame.body));
        peer.send("ACK", { id: frame.headers["ack"] ?? "" });
      }
      peer.drop();
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#peer?.drop();
  }
}

async function killUnderLoad(seed: number): Promise<void> {
  const random = createRandom(seed);
  using folder = createTempFolder();
  const options = { dataDir: folder.path, env: { STELE_LOG_LEVEL: "warn", STELE_STOMP_PORT: "0" } };
  let broker: BrokerProcess = await startBroker(options);
  const port = Number(/^ {2}STOMP +stomp:.*:(\d+)$/m.exec(broker.stderr())?.[1]);
  options.env.STELE_STOMP_PORT = String(port);
  const subscribers = durables.map((durable) => new Subscriber(durable));
  const publishers = topics.map((topic) => new Publisher(topic));
  const subscribing = subscribers.map((subscriber) => subscriber.run(port));
  const publishing = publishers.map((publisher) => publisher.run(port));
  const count = (): number => publishers.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0);
  for (let round = 0; round < rounds; round += 1) {
    const bound = count() + 1 + random.below(countUntilKillMax);
    await until(`${bound} SENDs are acknowledged`, () => count() >= bound, { timeoutMs: 60_000 });
    await broker.kill();
    broker = await startBroker(options);
  }
  for (const publisher of publishers) publisher.isStopped = true;
  await Promise.all(publishing);
  for (const { topic, acknowledged } of publishers) {
    for (const { durable, received: all } of subscribers) {
      const { destination, wanted } = durable;
      const received = all.get(topic) ?? [];
      if (!wanted.includes(topic)) {
        expect(received, `${topic} at ${destination}`).toEqual([]);
        continue;
      }
      const isMissing = (): boolean => acknowledged.some((number) => !received.includes(number));
      const what = `every acknowledged event of ${topic} has arrived at ${destination}`;
      await until(what, () => !isMissing(), { timeoutMs: 60_000 });
      const first = [...new Set(received)];
      expect(first, `${topic} at ${destination}`).toEqual(first.toSorted((one, other) => one - other));
    }
  }
  for (const subscriber of subscribers) subscriber.stop();
  await Promise.all(subscribing);
  process.stdout.write(`kill -9 under STOMP, seed ${seed}: ${count()} events acknowledged, ${rounds} kills\n`);
  expect((await broker.stop()).code).toBe(0);
}

describe.each(seeds)("STOMP with kill -9 of the broker, seed %d", (seed) => {
  it(
    `STOMP loses no acknowledged event and keeps the order, in ${rounds} rounds`,
    async () => killUnderLoad(seed),
    timeoutMs,
  );
});
