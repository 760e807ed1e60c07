import { describe, expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { createRandom, seedsOf } from "../harness/random.ts";
import { TailClient } from "../harness/tail-client.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";
import { publishUntil, runTail, sequencesOf } from "./support/tail-load.ts";

const seeds = seedsOf("CHECKS_KILL_SEEDS", [20_261_123]);
const reconnects = 50;
const kills = Number(process.env["CHECKS_KILL_ROUNDS"] ?? "2");
const topics = ["load/a", "load/b", "load/c"];
const timeoutMs = 60_000 * (kills + 4);

async function killUnderLoad(seed: number): Promise<void> {
  const random = createRandom(seed);
  using folder = createTempFolder();
  const options = { dataDir: folder.path, env: { STELE_LOG_LEVEL: "warn" } };
  let broker: BrokerProcess = await startBroker(options);
  let client = new Client(broker.url);
  for (const topic of topics) await client.open(topic);
  const stopping = new AbortController();
  const tail = new TailClient("topic=load/%23&after=OFFSET_FIRST");
  const running = [
    runTail(tail, { url: () => broker.url, random, signal: stopping.signal }),
    ...topics.map((topic) => publishUntil(stopping.signal, { client: () => client, topic })),
  ];
  for (let round = 1; round <= kills; round += 1) {
    const bound = (round * reconnects) / (kills + 1);
    await until(`the tail has reconnected ${bound} times`, () => tail.opened > bound, { timeoutMs: 60_000 });
    await broker.kill();
    await client[Symbol.asyncDispose]();
    broker = await startBroker(options);
    client = new Client(broker.url);
  }
  await until(`the tail has reconnected ${reconnects} times`, () => tail.opened > reconnects, { timeoutMs: 120_000 });
  stopping.abort();
  await Promise.all(running);
  const counts = await Promise.all(topics.map(async (topic) => (await client.state(topic)).sequenceNumber));
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (tail.events.length < total) await tail.read(broker.url, () => tail.events.length < total);
  for (const [index, topic] of topics.entries()) {
    const all = Array.from({ length: counts[index] ?? 0 }, (_, place) => place + 1);
    expect(sequencesOf(tail.events, topic), topic).toEqual(all);
  }
  expect(tail.notices.filter((name) => name !== "end")).toEqual([]);
  process.stdout.write(
    `kill -9 under a tail, seed ${seed}: ${tail.events.length} events, ${tail.opened} connections, ${kills} kills\n`,
  );
  await client[Symbol.asyncDispose]();
  expect((await broker.stop()).code).toBe(0);
}

describe.each(seeds)("a tail that reconnects at random moments, seed %d", (seed) => {
  it(
    `a tail misses and repeats no event in ${reconnects} connections, despite ${kills} kills of the broker`,
    async () => killUnderLoad(seed),
    timeoutMs,
  );
});
