import { expect, it } from "vitest";
import { Context } from "../conformance/mqtt/context.ts";
import type { Peer } from "../conformance/mqtt/peer.ts";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { portOf } from "../harness/listener-port.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { peakMebibytes } from "./support/process-memory.ts";

const publishersCount = 10;
const rounds = 20;
const publishesPerRound = 50;
const killedPerRound = 2;
const slowCount = 10;
const halfOpenCount = 20;
const padding = "x".repeat(200);
const peakMebibytesMax = 512;
/** Longest wait of an honest QoS 1 publish during the flood, on a machine with ten running processes for each processor. */
const honestWaitMsMax = 20_000;
const timeoutMs = 240_000;
const topic = "flood/a";

async function subscribeAll(context: Context, name: string, count: number): Promise<Peer[]> {
  const connect = async (index: number): Promise<Peer> => {
    const peer = await context.connect(`${name}-${index}`);
    await context.subscribe(peer, "flood/#", { qos: index % 2 === 0 ? 0 : 1 });
    return peer;
  };
  return Promise.all(Array.from({ length: count }, (_, index) => connect(index)));
}

/** Opens connections that never send a whole CONNECT. */
async function openHalf(context: Context): Promise<void> {
  for (let index = 0; index < halfOpenCount; index += 1) {
    const silent = await context.open();
    silent.sendBytes(Buffer.of(0x10, 0x20, 0, 4).subarray(0, index % 5)); // the start of a CONNECT, or nothing
  }
}

function publishSome(publisher: Peer, number: number, round: number): void {
  for (let index = 0; index < publishesPerRound; index += 1) {
    const payload = `${number}:${round * publishesPerRound + index}:${padding}`;
    publisher.send({ cmd: "publish", topic, payload, qos: 0 });
  }
}

/**
 * Publishes the flood in rounds. In each round, some of the subscribers `doomed` disconnect while events are on their way to them. Returns the longest wait
 * of an honest publish, in milliseconds.
 */
async function flood(context: Context, doomed: readonly Peer[], honest: Peer): Promise<number> {
  const names = Array.from({ length: publishersCount }, (_, number) => `publisher-${number}`);
  const publishers = await Promise.all(names.map((name) => context.connect(name)));
  let longestMs = 0;
  for (let round = 0; round < rounds; round += 1) {
    for (const [number, publisher] of publishers.entries()) publishSome(publisher, number, round);
    for (const peer of doomed.slice(round * killedPerRound, (round + 1) * killedPerRound)) peer.drop();
    const startedAt = performance.now();
    await context.publish("honest", { topic: "honest" }, honest);
    longestMs = Math.max(longestMs, performance.now() - startedAt);
  }
  return longestMs;
}

/** Receives every event of the flood; returns the event numbers of each publisher, in order of arrival. */
async function takeAll(peer: Peer): Promise<readonly (readonly number[])[]> {
  const found = Array.from({ length: publishersCount }, (): number[] => []);
  for (let left = publishersCount * rounds * publishesPerRound; left > 0; left -= 1) {
    const { payload } = await peer.next("publish");
    const [publisher, number] = payload.toString().split(":").map(Number);
    found[publisher ?? -1]?.push(number ?? -1);
  }
  return found;
}

async function check(broker: BrokerProcess): Promise<void> {
  const addresses = { tcp: portOf(broker, "MQTT"), websocket: "" };
  const context = new Context({ addresses, transport: "tcp", version: 5, name: "flood" });
  const honest = await context.connect("honest");
  await context.publish("first", { topic }, honest); // opens the topic
  await context.publish("first", { topic: "honest" }, honest);
  const doomed = await subscribeAll(context, "doomed", rounds * killedPerRound);
  const survivors = await subscribeAll(context, "survivor", 2);
  for (const peer of await subscribeAll(context, "slow", slowCount)) peer.pause();
  await openHalf(context);
  const longestMs = await flood(context, doomed, honest);
  const numbers = Array.from({ length: rounds * publishesPerRound }, (_, number) => number);
  const expected = Array.from({ length: publishersCount }, () => numbers);
  for (const survivor of survivors) expect(await takeAll(survivor)).toEqual(expected);
  context.close();
  process.stdout.write(`flood: ${Math.round(longestMs)} ms at most, ${Math.round(peakMebibytes(broker.pid))} MiB\n`);
  expect(longestMs).toBeLessThan(honestWaitMsMax);
  expect(peakMebibytes(broker.pid)).toBeLessThan(peakMebibytesMax);
  expect(broker.stdout()).not.toContain("MQTT connection failed");
}

it(
  "the broker delivers a whole flood to subscribers that read, while others disconnect, stop reading or never send CONNECT",
  async () => {
    using folder = createTempFolder();
    const env = { STELE_MQTT_PORT: "0", STELE_LOG_LEVEL: "warn" };
    await using broker = await startBroker({ dataDir: folder.path, env });
    await check(broker);
    expect(await broker.stop()).toMatchObject({ code: 0 });
  },
  timeoutMs,
);
