import { setImmediate } from "node:timers/promises";
import { PassThrough } from "node:stream";
import { afterEach, expect, it } from "vitest";
import { withSessionCalls } from "../../engine/testing/with-session-calls.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { outboxBytesMax } from "../shared/connection/limits.ts";
import { UnreadBytes } from "../shared/connection/memory.ts";
import { Outbox } from "../shared/connection/outbox.ts";
import { reason } from "./reason-codes.ts";
import { MqttWorld } from "./testing/mqtt-world.ts";
import { RawClient } from "./testing/raw-client.ts";

let world: MqttWorld | undefined;
afterEach(async () => {
  await world?.stop();
  world = undefined;
});

it("counts unfinished packets against the memory budget; over its limit, ends the connection that has held memory for longest", async () => {
  world = await MqttWorld.start({ memoryBytesMax: 250_000 });
  const clients: RawClient[] = [];
  for (const clientId of ["oldest", "second", "newest"]) {
    const client = await RawClient.connect(world.port, 5, { clientId });
    client.sendBytes(Buffer.concat([Buffer.of(0x30, 0xa0, 0x8d, 0x06), Buffer.alloc(90_000)])); // 90,000 of 100,000 bytes
    await RawClient.connect(world.port, 5, { clientId: `after ${clientId}` }); // the CONNACK shows that the broker has read the bytes
    clients.push(client);
  }
  const [oldest, second, newest] = clients;
  expect(await oldest?.next("disconnect")).toMatchObject({ reasonCode: reason.quotaExceeded });
  for (const client of [second, newest]) {
    client?.sendBytes(Buffer.alloc(10_000));
    client?.send({ cmd: "pingreq" });
  }
  // The topic names contain U+0000, so a DISCONNECT shows that the broker has read the whole packet.
  for (const client of [second, newest]) expect((await client?.nextAny())?.cmd).toBe("disconnect");
  expect(world.heldBytes()).toBe(0);
});

it("counts the filters of a session beyond the first 16 against the memory budget", async () => {
  world = await MqttWorld.start({ memoryBytesMax: 300_000 });
  const clients: RawClient[] = [];
  for (const count of [16, 100, 100]) {
    const client = await RawClient.connect(world.port, 5, { clientId: `client ${clients.length}` });
    const subscriptions = Array.from({ length: count }, (_, index) => ({ topic: `a/+/${index}`, qos: 0 }));
    client.send({ cmd: "subscribe", messageId: 1, subscriptions });
    await client.next("suback");
    clients.push(client);
  }
  const [few, oldest, newest] = clients;
  expect(await oldest?.next("disconnect")).toMatchObject({ reasonCode: reason.quotaExceeded });
  for (const client of [few, newest]) {
    client?.send({ cmd: "pingreq" });
    await client?.next("pingresp");
  }
});

it("counts a CONNECT, SUBSCRIBE or UNSUBSCRIBE against the memory budget while it waits for the store", async () => {
  const memory = createMemoryStore();
  let [begun, going] = [createDeferred<void>(), createDeferred<void>()];
  const wait = async (): Promise<void> => {
    begun.resolve();
    await going.promise;
  };
  const store = withSessionCalls(memory, {
    claimSession: (claim) => wait().then(() => memory.sessions.claimSession(claim)),
    saveSessionFilters: (session, change) => wait().then(() => memory.sessions.saveSessionFilters(session, change)),
  });
  world = await MqttWorld.start({ store });
  const heldWhile = async (send: () => void): Promise<number | undefined> => {
    [begun, going] = [createDeferred(), createDeferred()];
    send();
    await begun.promise;
    await setImmediate(); // the broker counts the packet in the turn that handles it
    const held = world?.heldBytes();
    going.resolve();
    return held;
  };
  const client = await RawClient.open(world.port, 5);
  const will = { topic: "will", payload: Buffer.alloc(60_000), qos: 0, retain: false } as const;
  const properties = { sessionExpiryInterval: 60 };
  const connect = { cmd: "connect", clientId: "c", clean: false, keepalive: 0, will, properties } as const;
  expect(await heldWhile(() => client.send(connect))).toBeGreaterThan(60_000);
  await client.next("connack");
  const topics = Array.from({ length: 10 }, (_, index) => "x".repeat(250) + index);
  const long = [...topics, ...Array.from({ length: 90 }, () => topics[0] ?? "")]; // 10 filters, some of them several times
  const subscriptions = long.map((topic) => ({ topic, qos: 0 as const }));
  expect(await heldWhile(() => client.send({ cmd: "subscribe", messageId: 1, subscriptions }))).toBeGreaterThan(25_000);
  await client.next("suback");
  expect(
    await heldWhile(() => client.send({ cmd: "unsubscribe", messageId: 2, unsubscriptions: long })),
  ).toBeGreaterThan(25_000);
  await client.next("unsuback");
  expect(world.heldBytes()).toBe(0);
});

it("once the limit over all readers is reached, a slow reader has no room, and a quick one has", async () => {
  const shared = new UnreadBytes(outboxBytesMax / 2);
  const [slow, quick] = [new Outbox(new PassThrough(), shared), new Outbox(new PassThrough(), shared)];
  slow.write(Buffer.alloc(outboxBytesMax / 2));
  await setImmediate(); // the outbox writes at the end of the turn
  expect([slow.hasRoom, quick.hasRoom]).toEqual([false, true]);
  slow.close();
  expect(slow.hasRoom).toBe(true);
});

it("counts lost publishes, connections, and answers by reason code", async () => {
  const answers: string[] = [];
  let [lost, connections] = [0, (): number => 0];
  world = await MqttWorld.start({
    metrics: {
      answered: (packet, code) => void answers.push(`${packet} ${code}`),
      publishLost: () => void (lost += 1),
      watchConnections: (read) => void (connections = read),
    },
  });
  const client = await RawClient.connect(world.port, 5);
  client.send({ cmd: "subscribe", messageId: 1, subscriptions: ["a", "a+"].map((topic) => ({ topic, qos: 1 })) });
  await client.next("suback");
  client.send({ cmd: "publish", topic: "\u00fcmlaut", payload: "x", qos: 0 });
  client.send({ cmd: "publish", topic: "\u00fcmlaut", payload: "x", qos: 1, messageId: 1 });
  await client.next("puback");
  expect(connections()).toBe(1);
  client.sendBytes(Buffer.of(0, 0));
  await client.closed;
  expect(answers).toEqual(["connack 0", "suback 1", "suback 143", "puback 144", "disconnect 129"]);
  expect(lost).toBe(1);
});
