import { afterAll, beforeAll, expect, it } from "vitest";
import { Context } from "../conformance/mqtt/context.ts";
import { type Addresses, Peer } from "../conformance/mqtt/peer.ts";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { createTempFolder, type TempFolder } from "../harness/temp-folder.ts";
import { peakMebibytes } from "./support/process-memory.ts";

const clientCount = 1_000;
const backlog = 100;
const payload = "x".repeat(1_000);
/** Connections opened at once before the return: few enough for the system's listen queue. */
const connectedAtOnce = 100;
/** Upper bound on the memory that the return adds. Unread events of all clients may take 64 MiB; the rest is for sockets and events in flight. */
const returnMebibytesMax = 256;
/** Longest wait of an honest publish during the return. Measured: 4 s on a machine with ten running processes for each processor. */
const honestWaitMsMax = 20_000;
const timeoutMs = 240_000;

let folder: TempFolder;
let broker: BrokerProcess;
let addresses: Addresses;
let context: Context;
beforeAll(async () => {
  folder = createTempFolder();
  broker = await startBroker({ dataDir: folder.path, env: { STELE_MQTT_PORT: "0" } });
  const [, port] = /^ {2}MQTT +mqtt:.*:(\d+)$/m.exec(broker.stderr()) ?? [];
  addresses = { tcp: Number(port), websocket: "" };
  context = new Context({ addresses, transport: "tcp", version: 5, name: "return" });
});
afterAll(async () => {
  context.close();
  await broker.stop();
  folder[Symbol.dispose]();
});

async function connect(index: number): Promise<Peer> {
  const peer = await Peer.open(addresses, { transport: "tcp", version: 5 });
  const properties = { sessionExpiryInterval: 1_000, receiveMaximum: 20 };
  peer.send({ cmd: "connect", clientId: `client-${index}`, clean: false, keepalive: 0, properties });
  await peer.next("connack");
  return peer;
}

async function leaveSession(index: number): Promise<void> {
  const peer = await connect(index);
  peer.send({ cmd: "subscribe", messageId: 1, subscriptions: [{ topic: "return/#", qos: 1 }] });
  await peer.next("suback");
  peer.drop();
}

/** Receives and acknowledges the whole backlog; returns its number of events. @throws Error if one is missing, repeated or out of order. */
async function takeBacklog(index: number): Promise<number> {
  const peer = await connect(index);
  let count = 0;
  while (count < backlog) {
    const packet = await peer.next("publish");
    if (!packet.payload.toString().startsWith(`${count}:`))
      throw new Error(`expected event ${count}, got ${packet.payload.toString().slice(0, 20)}`);
    peer.send({ cmd: "puback", messageId: packet.messageId });
    count += 1;
  }
  peer.drop();
  return count;
}

it(
  "1,000 clients that reconnect at once get their backlogs in bounded memory, and do not delay an honest publish",
  async () => {
    for (let first = 0; first < clientCount; first += connectedAtOnce) {
      await Promise.all(Array.from({ length: connectedAtOnce }, (_, index) => leaveSession(first + index)));
    }
    const client = new Client(broker.url);
    await client.open("return/a");
    for (let number = 0; number < backlog; number += 1) await client.publish("return/a", `${number}:${payload}`);
    const honest = await context.connect("honest");
    await context.publish("honest", { topic: "honest" }, honest);
    const before = peakMebibytes(broker.pid);

    const state = { areBack: false };
    const back = Promise.all(Array.from({ length: clientCount }, (_, index) => takeBacklog(index)));
    const ended = back.finally(() => (state.areBack = true));
    let longestMs = 0;
    while (!state.areBack) {
      const startedAt = performance.now();
      await context.publish("honest", { topic: "honest" }, honest);
      longestMs = Math.max(longestMs, performance.now() - startedAt);
    }
    expect(new Set(await ended)).toEqual(new Set([backlog]));
    const grownMebibytes = peakMebibytes(broker.pid) - before;
    process.stdout.write(
      `${clientCount} clients came back: ${grownMebibytes.toFixed(0)} MiB, ${longestMs.toFixed(0)} ms\n`,
    );
    expect(grownMebibytes).toBeLessThan(returnMebibytesMax);
    expect(longestMs).toBeLessThan(honestWaitMsMax);
  },
  timeoutMs,
);
