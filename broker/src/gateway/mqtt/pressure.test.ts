import { setImmediate as turn } from "node:timers/promises";
import { afterEach, expect, it, vi } from "vitest";
import { withSessionCalls } from "../../engine/testing/with-session-calls.ts";
import { withCalls } from "../../lib/with-calls.ts";
import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import { storeTurnsMax } from "../../engine/session/stored/store-turns.ts";
import { TimeSlices } from "../../lib/time-slices.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { reason } from "./reason-codes.ts";
import { MqttWorld, type MqttWorldOptions } from "./testing/mqtt-world.ts";
import { RawClient } from "./testing/raw-client.ts";

let world: MqttWorld;
afterEach(async () => {
  vi.useRealTimers();
  await world.stop();
});

/** A world whose chain takes nothing until the gate opens. */
async function startHeld(options: MqttWorldOptions): Promise<Deferred<void>> {
  const gate = createDeferred<void>();
  world = await MqttWorld.start({
    ...options,
    change: (ledger) => {
      const append = ledger.append.bind(ledger);
      ledger.append = async (batches, signal) => {
        await gate.promise;
        return append(batches, signal);
      };
    },
  });
  await world.broker.open({ topic: "a", groupId: undefined });
  return gate;
}

async function sequence(): Promise<number> {
  return (await world.broker.state({ topic: "a", groupId: undefined })).sequence;
}

/** Lets the broker read what other clients have sent. */
async function exchangePings(): Promise<void> {
  const client = await RawClient.connect(world.port, 5, { clientId: "other" });
  for (let count = 0; count < 10; count += 1) {
    client.send({ cmd: "pingreq" });
    await client.next("pingresp");
  }
}

it("makes clients wait while the group's publish queue is full, and loses no publish of QoS 0 or 1", async () => {
  const gate = await startHeld({ limits: { publishesWaitingMax: 5 } });
  const clients = await Promise.all(
    ["one", "two"].map(async (clientId) => RawClient.connect(world.port, 5, { clientId })),
  );
  for (const client of clients) {
    for (let id = 1; id <= 50; id += 1) {
      client.send({ cmd: "publish", topic: "a", payload: `${id}`, qos: 0 });
      client.send({ cmd: "publish", topic: "a", payload: `${id}`, qos: 1, messageId: id });
    }
  }
  gate.resolve();
  for (const client of clients) {
    for (let id = 1; id <= 50; id += 1) {
      expect(await client.next("puback")).toMatchObject({ messageId: id, reasonCode: reason.success });
    }
  }
  expect(await sequence()).toBe(200);
});

it("does not count a client as silent while it waits for the broker", async () => {
  const gate = await startHeld({ limits: { publishesWaitingMax: 1 } });
  const client = await RawClient.connect(world.port, 5, { keepalive: 1 });
  for (let id = 1; id <= 20; id += 1) client.send({ cmd: "publish", topic: "a", payload: "x", qos: 1, messageId: id });
  // When the broker ends the second silent client, the keep-alive of the waiting client is over for certain.
  for (const clientId of ["first", "second"]) {
    const silent = await RawClient.connect(world.port, 5, { clientId, keepalive: 1 });
    expect(await silent.next("disconnect")).toMatchObject({ reasonCode: reason.keepAliveTimeout });
  }
  gate.resolve();
  for (let id = 1; id <= 20; id += 1) expect(await client.next("puback")).toMatchObject({ messageId: id });
});

it("counts publishes that wait for room against the memory budget, and ends the connection that has held one for longest", async () => {
  // One transaction is in progress at most, so that what waits behind it keeps waiting.
  const limits = { publishesWaitingMax: 1, pipelineAfterMs: 60_000 };
  const gate = await startHeld({ limits, memoryBytesMax: 50_000 });
  const filler = await RawClient.connect(world.port, 5, { clientId: "filler" });
  for (let id = 1; id <= 15; id += 1) filler.send({ cmd: "publish", topic: "a", payload: "", qos: 1, messageId: id });
  const call = { topic: "a", groupId: undefined, content: new Uint8Array(), extensions: [], mayBeEmpty: true };
  await vi.waitFor(() => expect(world.broker.whenRoom([call], () => {})).toBe(false), 60_000);
  const clients: RawClient[] = [];
  for (const clientId of ["oldest", "second", "newest"]) {
    const client = await RawClient.connect(world.port, 5, { clientId });
    client.send({ cmd: "publish", topic: "a", payload: "x".repeat(20_000), qos: 1, messageId: 1 });
    clients.push(client);
    const bytes = 20_000 * clients.length;
    if (clientId !== "newest") await vi.waitFor(() => expect(world.heldBytes()).toBeGreaterThanOrEqual(bytes), 60_000);
  }
  const [oldest, second, newest] = clients;
  expect(await oldest?.next("disconnect")).toMatchObject({ reasonCode: reason.quotaExceeded });
  gate.resolve();
  for (const client of [second, newest]) expect(await client?.next("puback")).toMatchObject({ messageId: 1 });
  for (let id = 1; id <= 15; id += 1) await filler.next("puback");
  expect(await sequence()).toBe(17);
});

it("reads at most Receive Maximum publishes of a 3.1.1 client while they wait for the chain, and commits each once", async () => {
  let submitted = 0;
  const gate = await startHeld({ settings: { receiveMax: 10 }, onSubmitted: () => (submitted += 1) });
  const client = await RawClient.connect(world.port, 4);
  for (let messageId = 1; messageId <= 100; messageId += 1) {
    client.send({ cmd: "publish", topic: "a", payload: "x", qos: messageId <= 50 ? 1 : 2, messageId });
  }
  await vi.waitFor(() => expect(submitted).toBeGreaterThanOrEqual(10), 60_000);
  await exchangePings();
  expect(submitted).toBe(10);
  gate.resolve();
  for (let messageId = 1; messageId <= 100; messageId += 1) {
    expect(await client.next(messageId <= 50 ? "puback" : "pubrec")).toMatchObject({ messageId });
  }
  expect(await sequence()).toBe(100);
});

it("ends a client that repeats a QoS 2 publish too often before its answer", async () => {
  const gate = await startHeld({ settings: { receiveMax: 10 } });
  const client = await RawClient.connect(world.port, 5);
  for (let count = 0; count < 30; count += 1) {
    client.send({ cmd: "publish", topic: "a", payload: "x", qos: 2, messageId: 1, dup: count > 0 });
  }
  expect(await client.next("disconnect")).toMatchObject({ reasonCode: reason.receiveMaximumExceeded });
  gate.resolve();
});

it("reads no more releases of a client than its Receive Maximum while the store is slow", async () => {
  const gate = createDeferred<void>();
  const memory = createMemoryStore();
  const reads = { now: 0, most: 0 };
  const findPublishKey: typeof memory.findPublishKey = async (key) => {
    reads.now += 1;
    reads.most = Math.max(reads.most, reads.now);
    await gate.promise;
    reads.now -= 1;
    return memory.findPublishKey(key);
  };
  world = await MqttWorld.start({ settings: { receiveMax: 10 }, store: withCalls(memory, { findPublishKey }) });
  const client = await RawClient.connect(world.port, 5, { properties: { sessionExpiryInterval: 60 } });
  for (let messageId = 1; messageId <= 500; messageId += 1) client.send({ cmd: "pubrel", messageId });
  await exchangePings();
  gate.resolve();
  for (let messageId = 1; messageId <= 500; messageId += 1)
    expect(await client.next("pubcomp")).toMatchObject({ messageId, reasonCode: reason.packetIdNotFound });
  expect(reads.most).toBeLessThanOrEqual(10);
});

it("gives no session to a client that has closed its connection while its CONNECT waits for the store", async () => {
  const gate = createDeferred<void>();
  const memory = createMemoryStore();
  let claims = 0;
  const claimSession: typeof memory.sessions.claimSession = async (claim) => {
    if (claim.key === "c") {
      claims += 1;
      await gate.promise;
    }
    return memory.sessions.claimSession(claim);
  };
  world = await MqttWorld.start({ store: withSessionCalls(memory, { claimSession }) });
  const connect = async (): Promise<RawClient> => {
    const client = await RawClient.open(world.port, 5);
    client.send({ cmd: "connect", clientId: "c", clean: false, keepalive: 0 });
    return client;
  };
  const first = await connect();
  const impatient = await connect();
  impatient.finish();
  await exchangePings();
  const last = await connect();
  await impatient.closed;
  gate.resolve();
  await Promise.all([first.next("connack"), last.next("connack")]);
  expect(claims).toBe(2);
});

it("if a client ends only its side of the connection while its SUBSCRIBE waits for the store, answers the SUBSCRIBE", async () => {
  const gate = createDeferred<void>();
  const memory = createMemoryStore();
  const saveSessionFilters: typeof memory.sessions.saveSessionFilters = async (...call) => {
    await gate.promise;
    return memory.sessions.saveSessionFilters(...call);
  };
  world = await MqttWorld.start({ store: withSessionCalls(memory, { saveSessionFilters }) });
  const clients: RawClient[] = [];
  for (let count = 0; count <= storeTurnsMax; count += 1) {
    const client = await RawClient.connect(world.port, 4, { clientId: `c${count}`, clean: false });
    client.send({ cmd: "subscribe", messageId: 1, subscriptions: [{ topic: "a", qos: 1 }] });
    clients.push(client);
  }
  clients.at(-1)?.finish();
  await exchangePings();
  gate.resolve();
  for (const client of clients) expect(await client.next("suback")).toMatchObject({ granted: [1] });
});

it("does not count a client as silent whose ping came in time, but was not read before the timer ran", async () => {
  world = await MqttWorld.start();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const client = await RawClient.connect(world.port, 5, { keepalive: 1 });
  await turn(); // From here on, the broker reads the ping only after this turn.
  client.send({ cmd: "pingreq" });
  vi.advanceTimersByTime(1_500); // As after a pause of the process.
  await client.next("pingresp");
  vi.advanceTimersByTime(1_500);
  expect(await client.next("disconnect")).toMatchObject({ reasonCode: reason.keepAliveTimeout });
});

it("counts only whole packets as a sign of life, [MQTT-3.1.2-22]", async () => {
  world = await MqttWorld.start();
  const client = await RawClient.connect(world.port, 5, { keepalive: 1 });
  client.sendBytes(Buffer.of(0x30, 0x7f));
  const trickle = setInterval(() => client.sendBytes(Buffer.of(0)), 100);
  expect(await client.next("disconnect")).toMatchObject({ reasonCode: reason.keepAliveTimeout });
  clearInterval(trickle);
});

it.each([
  [40, undefined],
  [1_000, expect.stringMatching(/^100106 /)],
])(
  "sends a reason string only if it fits the Maximum Packet Size: %s, [MQTT-3.4.2-2]",
  async (maximumPacketSize, text) => {
    world = await MqttWorld.start();
    const client = await RawClient.connect(world.port, 5, { properties: { maximumPacketSize } });
    client.send({ cmd: "publish", topic: "\u00fcmlaut", payload: "x", qos: 1, messageId: 1 });
    const answer = await client.next("puback");
    expect([answer.reasonCode, answer.properties?.reasonString]).toEqual([reason.topicNameInvalid, text]);
  },
);

it("refuses a client whose Maximum Packet Size is smaller than its CONNACK", async () => {
  world = await MqttWorld.start();
  const client = await RawClient.open(world.port, 5);
  client.send({ cmd: "connect", clientId: "raw", clean: true, keepalive: 0, properties: { maximumPacketSize: 12 } });
  expect(await client.next("connack")).toMatchObject({ reasonCode: 0x95 });
  await client.closed;
});

it("refuses a response topic with a wildcard, [MQTT-3.3.2-14]", async () => {
  world = await MqttWorld.start();
  const client = await RawClient.connect(world.port, 5);
  client.send({ cmd: "publish", topic: "a", payload: "x", qos: 0, properties: { responseTopic: "a/+" } });
  expect(await client.next("disconnect")).toMatchObject({ reasonCode: 0x82 });
});

it.each(["publish", "subscribe", "unsubscribe"] as const)(
  "serves many tiny %s packets of one client in slices, each of them once and in order",
  async (cmd) => {
    // Each reading of the clock advances it by a millisecond, so a slice lasts for few packets.
    let now = 0;
    let turns = 0;
    const soon = (action: () => void): void => {
      turns += 1;
      setImmediate(action);
    };
    const slices = new TimeSlices({ monotonic: () => (now += 1), soon });
    world = await MqttWorld.start({ slices });
    await world.broker.open({ topic: "a", groupId: undefined });
    const client = await RawClient.connect(world.port, 5);
    const before = turns;
    const filters = { subscriptions: [{ topic: "b", qos: 0 }], unsubscriptions: ["b"] };
    const [fields, answer] = {
      publish: [{ topic: "a", payload: "", qos: 1 }, "puback"] as const,
      subscribe: [filters, "suback"] as const,
      unsubscribe: [filters, "unsuback"] as const,
    }[cmd];
    for (let id = 1; id <= 500; id += 1) client.send({ cmd, ...fields, messageId: id });
    for (let id = 1; id <= 500; id += 1) expect(await client.next(answer)).toMatchObject({ messageId: id });
    expect(turns - before).toBeGreaterThan(50);
  },
);
