import { connectAsync, type MqttClient } from "mqtt";
import { describe, expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { createRandom, seedsOf } from "../harness/random.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";
import { replayAll, untilSteady } from "./support/replay.ts";

const seeds = seedsOf("CHECKS_KILL_SEEDS", [20_261_123]);
const rounds = Number(process.env["CHECKS_KILL_ROUNDS"] ?? "2");
/** Publishes that one client has in flight. */
const window = 10;
const countUntilKillMax = 150;
/** Every wait has its own timeout. This one ends a test that hangs elsewhere. */
const timeoutMs = 60_000 * (rounds + 4);
const publishers = [
  ["load/one/a", 1],
  ["load/one/b", 1],
  ["load/two/a", 2],
  ["load/two/b", 2],
] as const;

/** A client that keeps its session, reconnects after each kill, and repeats unacknowledged packets. */
function connect(port: string, clientId: string): Promise<MqttClient> {
  return connectAsync(`mqtt://127.0.0.1:${port}`, {
    clientId,
    clean: false,
    reconnectPeriod: 50,
    connectTimeout: 60_000,
  });
}

/** Publishes 0, 1, 2, … to one topic until `stop` is called. */
class Publisher {
  readonly topic: string;
  readonly #qos: 1 | 2;
  readonly #client: MqttClient;
  readonly acknowledged: number[] = [];
  sent = 0;
  readonly #unsent = new Set<number>();
  #isStopped = false;

  constructor(client: MqttClient, [topic, qos]: (typeof publishers)[number]) {
    this.#client = client;
    this.topic = topic;
    this.#qos = qos;
  }

  async run(): Promise<void> {
    await Promise.all(Array.from({ length: window }, () => this.#publishAll()));
  }

  /** The numbers that mqtt.js sent, in order. */
  get expected(): readonly number[] {
    return Array.from({ length: this.sent }, (_, number) => number).filter((number) => !this.#unsent.has(number));
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #publishAll(): Promise<void> {
    while (!this.#isStopped) {
      const number = this.sent;
      this.sent += 1;
      try {
        await this.#client.publishAsync(this.topic, String(number), { qos: this.#qos });
        this.acknowledged.push(number);
      } catch {
        this.#unsent.add(number); // mqtt.js had not sent it when the connection closed, and never will
      }
    }
  }
}

function numbersOf(all: readonly (readonly [string, number])[], topic: string): readonly number[] {
  return all.filter(([name]) => name === topic).map(([, number]) => number);
}

async function killUnderLoad(seed: number): Promise<void> {
  const random = createRandom(seed);
  using folder = createTempFolder();
  const options = { dataDir: folder.path, env: { STELE_LOG_LEVEL: "warn", STELE_MQTT_PORT: "0" } };
  let broker: BrokerProcess = await startBroker(options);
  const [, port = ""] = /mqtt:\/\/\S+:(\d+)/.exec(broker.stderr()) ?? [];
  options.env.STELE_MQTT_PORT = port;

  const subscriber = await connect(port, "subscriber");
  const received: (readonly [string, number])[] = [];
  const resumed: boolean[] = [];
  subscriber.on("connect", ({ sessionPresent }) => resumed.push(sessionPresent));
  subscriber.on("message", (topic, payload) => received.push([topic, Number(payload.toString())]));
  await subscriber.subscribeAsync("load/#", { qos: 2 });
  const clients = await Promise.all(publishers.map(([topic]) => connect(port, topic)));
  const loads = clients.map((client, index) => new Publisher(client, publishers[index] ?? publishers[0]));
  const running = Promise.all(loads.map((load) => load.run()));
  const countAcknowledged = (): number => loads.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0);
  for (let round = 0; round < rounds; round += 1) {
    const bound = countAcknowledged() + 1 + random.below(countUntilKillMax);
    await until(`${bound} publishes are acknowledged`, () => countAcknowledged() >= bound, { timeoutMs: 60_000 });
    await broker.kill();
    broker = await startBroker(options);
  }
  for (const load of loads) load.stop();
  await running;

  const rest = new Client(broker.url);
  await untilSteady(rest);
  const events = (await replayAll(rest)).map(
    ({ topic, content }) => [topic, Number(Buffer.from(content, "base64").toString())] as const,
  );
  await until(
    "the subscriber has every event",
    () => new Set(received.map(String)).size >= new Set(events.map(String)).size,
  );
  for (const [topic, qos] of publishers) {
    const expected = loads.find((load) => load.topic === topic)?.expected;
    const published = numbersOf(events, topic);
    if (qos === 2) expect(published, topic).toEqual(expected);
    // A QoS 1 repeat may become a second event. The first copies are in order.
    expect([...new Set(published)], topic).toEqual(expected);
    expect([...new Set(numbersOf(received, topic))], topic).toEqual(expected);
    if (qos === 2) expect(numbersOf(received, topic), topic).toEqual(expected);
  }
  expect(resumed).toEqual(Array.from({ length: rounds }, () => true));
  process.stdout.write(`kill -9 under MQTT, seed ${seed}: ${events.length} events, ${rounds} kills\n`);
  for (const client of [subscriber, ...clients]) await client.endAsync();
  expect((await broker.stop()).code).toBe(0);
}

describe.each(seeds)("MQTT with kill -9 of the broker, seed %d", (seed) => {
  it(
    `MQTT loses no acknowledged event, publishes QoS 2 once and in order, and resumes sessions, in ${rounds} rounds`,
    async () => killUnderLoad(seed),
    timeoutMs,
  );
});
