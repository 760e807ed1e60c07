import { expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { createRandom, seedsOf } from "../harness/random.ts";
import { type Attempt, type Receiver, startReceiver } from "../harness/receiver.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";

const seeds = seedsOf("CHECKS_KILL_LANES_SEEDS", [20_261_123]);
const rounds = Number(process.env["CHECKS_KILL_ROUNDS"] ?? "2");
const topics = Array.from({ length: 8 }, (_, index) => `lane/${index}`);
const quick = { STELE_CALLBACK_BACKOFF_MIN_MS: "20", STELE_CALLBACK_BACKOFF_MAX_MS: "100", STELE_LOG_LEVEL: "warn" };
const timeoutMs = 60_000 * (rounds + 4);

interface Seen {
  readonly topic: string;
  readonly sequence: number;
}

/** The events of a callback: one, or a batch. */
function eventsOf({ body }: Attempt): readonly Seen[] {
  const { event, events = event === undefined ? [] : [event] } = JSON.parse(body.toString()) as {
    event?: { topic: string; eventId: string };
    events?: readonly { topic: string; eventId: string }[];
  }; // Unit tests of callbacks check the shape.
  return events.map(({ topic, eventId }) => ({ topic, sequence: Number(eventId.split("-")[1]) }));
}

/** Reads what a receiver got. Each event must arrive after all earlier events of its topic. */
class Order implements AsyncDisposable {
  readonly receiver: Receiver;
  /** The newest sequence of each topic. */
  readonly newest = new Map<string, number>();
  /** Maximum number of events in one request. */
  largest = 0;
  #read = 0;

  constructor(receiver: Receiver) {
    this.receiver = receiver;
  }

  read(): this {
    for (const attempt of this.receiver.attempts.slice(this.#read)) {
      const events = eventsOf(attempt);
      this.largest = Math.max(this.largest, events.length);
      for (const { topic, sequence } of events) this.#take(topic, sequence);
      this.#read += 1;
    }
    return this;
  }

  #take(topic: string, sequence: number): void {
    const known = this.newest.get(topic) ?? 0;
    expect(sequence, `${topic} after ${known}`).toBeLessThanOrEqual(known + 1);
    this.newest.set(topic, Math.max(known, sequence));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.receiver[Symbol.asyncDispose]();
  }
}

/** Publishes to all topics until `isOver`, or until a kill interrupts a call. */
async function publishUntil(client: Client, isOver: () => boolean): Promise<void> {
  const publish = async (topic: string): Promise<void> => {
    for (let count = 0; !isOver(); count += 1) {
      try {
        await client.publish(topic, String(count));
      } catch {
        return;
      }
    }
  };
  await Promise.all(topics.map(publish));
}

it.each(seeds)(
  "kill -9 during concurrent and batched delivery: no event is missing, and each topic keeps its order, seed %i",
  async (seed) => {
    using folder = createTempFolder();
    const random = createRandom(seed);
    await using topicsAtOnce = new Order(await startReceiver());
    await using batches = new Order(await startReceiver());
    await using both = new Order(await startReceiver());
    const orders = [
      { order: topicsAtOnce, shape: "concurrency=8" },
      { order: batches, shape: "batch=50" },
      { order: both, shape: "batch=20&batchMs=20&concurrency=4" },
    ];
    let broker: BrokerProcess | undefined;
    for (let round = 0; round < rounds; round += 1) {
      broker = await startBroker({ dataDir: folder.path, env: quick });
      await using client = new Client(broker.url);
      if (round === 0) {
        for (const topic of topics) await client.open(topic);
        for (const { order, shape } of orders) {
          const url = encodeURIComponent(order.receiver.url);
          const answer = await fetch(`${broker.url}/rest/subscribe?topic=lane/%2B&url=${url}&${shape}`);
          expect(await answer.json()).toMatch(/^[0-9a-f-]{36}$/);
        }
      }
      const state = { isOver: false };
      const publishing = publishUntil(client, () => state.isOver);
      const due = topicsAtOnce.receiver.attempts.length + 50 + random.below(150);
      await until("events are delivered", () => topicsAtOnce.receiver.attempts.length >= due, { timeoutMs: 60_000 });
      await broker.kill();
      state.isOver = true;
      await publishing;
    }
    broker = await startBroker({ dataDir: folder.path, env: quick });
    await using client = new Client(broker.url);
    for (const topic of topics) {
      const { sequenceNumber } = await client.state(topic);
      expect(sequenceNumber).toBeGreaterThan(0);
      for (const { order, shape } of orders) {
        const isThere = (): boolean => order.read().newest.get(topic) === sequenceNumber;
        await until(`the newest event of ${topic} arrives with ${shape}`, isThere, { timeoutMs: 60_000 });
      }
    }
    expect(batches.largest).toBeGreaterThan(1);
    expect((await broker.stop()).code).toBe(0);
  },
  timeoutMs,
);
