import { afterEach, beforeEach, expect, it } from "vitest";
import { MqttWorld } from "./testing/mqtt-world.ts";
import { RawClient } from "./testing/raw-client.ts";

let world: MqttWorld;
const counts = { lost: 0, dropped: 0 };
beforeEach(async () => {
  Object.assign(counts, { lost: 0, dropped: 0 });
  world = await MqttWorld.start({
    settings: { qos0: "live" },
    metrics: { publishLost: () => (counts.lost += 1), deliveryDropped: () => (counts.dropped += 1) },
  });
});
afterEach(async () => world.stop());

async function connect(clientId: string, fields: object = {}): Promise<RawClient> {
  return RawClient.connect(world.port, 5, { clientId, ...fields });
}

async function subscribe(client: RawClient, ...subscriptions: object[]): Promise<void> {
  client.send({ cmd: "subscribe", messageId: 1, subscriptions: subscriptions.map((one) => ({ qos: 2, ...one })) });
  await client.next("suback");
}

/** Publishes, and resolves once the broker has handled the publishes. */
async function publish(client: RawClient, ...publishes: object[]): Promise<void> {
  for (const one of publishes) client.send({ cmd: "publish", topic: "live/a", payload: "x", qos: 0, ...one });
  client.send({ cmd: "pingreq" });
  await client.next("pingresp");
}

it("passes a publish of QoS 0 once to each connected subscriber, and does not commit it", async () => {
  const [publisher, subscriber] = [await connect("p"), await connect("s")];
  const properties = { userProperties: { mine: "1" } };
  await subscribe(subscriber, { topic: "live/#" }, { topic: "+/a" });
  await publish(publisher, { payload: "one", properties }, { payload: "two" });

  const first = await subscriber.next("publish");
  expect(first).toMatchObject({ topic: "live/a", qos: 0, retain: false, dup: false });
  expect(first.payload.toString()).toBe("one");
  expect(first.properties?.userProperties).toEqual({ mine: "1" }); // neither eventId nor sequence nor block
  expect((await subscriber.next("publish")).payload.toString()).toBe("two");
  expect(await world.broker.exist({ topic: "live/a", groupId: undefined })).toBe(false);
});

it("commits publishes of QoS 1, and publishes of QoS 0 with the retain flag", async () => {
  const [publisher, subscriber] = [await connect("p"), await connect("s")];
  await subscribe(subscriber, { topic: "#" });
  await publish(publisher, { payload: "kept", retain: true });
  expect((await subscriber.next("publish")).properties?.userProperties).toMatchObject({ "svc-sequence": "1" });
  publisher.send({ cmd: "publish", topic: "live/a", payload: "x", qos: 1, messageId: 7 });
  await publisher.next("puback");
  expect((await subscriber.next("publish")).properties?.userProperties).toMatchObject({ "svc-sequence": "2" });
});

it("does not deliver a live event to a session that was disconnected", async () => {
  const publisher = await connect("p");
  const lasting = { clean: false, properties: { sessionExpiryInterval: 1_000 } };
  const before = await connect("s", lasting);
  await subscribe(before, { topic: "live/a" });
  before.destroy();
  await before.closed;
  await publish(publisher, { payload: "missed" });
  const after = await connect("s", lasting);
  await publish(publisher, { payload: "heard" });
  expect((await after.next("publish")).payload.toString()).toBe("heard");
});

it("sends a live event with the subscription identifier, and none back to its publisher by a no-local filter", async () => {
  const client = await connect("both");
  await subscribe(client, { topic: "own", nl: true });
  const identified = { cmd: "subscribe", messageId: 2, properties: { subscriptionIdentifier: 9 } };
  client.send({ ...identified, subscriptions: [{ topic: "live/a", qos: 0 }] });
  await client.next("suback");
  client.send({ cmd: "publish", topic: "own", payload: "x", qos: 0 });
  client.send({ cmd: "publish", topic: "live/a", payload: "x", qos: 0 });
  expect(await client.next("publish")).toMatchObject({ topic: "live/a", properties: { subscriptionIdentifier: 9 } });
});

it("gives each live event to one member of a share, in turn", async () => {
  const publisher = await connect("p");
  const members = [await connect("m1"), await connect("m2")];
  for (const member of members) await subscribe(member, { topic: "$share/both/live/#" });
  // The delivery of a committed event shows that the share reads.
  publisher.send({ cmd: "publish", topic: "live/a", payload: "committed", qos: 1, messageId: 1 });
  await publisher.next("puback");
  await Promise.race(members.map((member) => member.next("publish")));
  const held = (): number => members.reduce((sum, { packets }) => sum + packets.length, 0);
  const before = members.map(({ packets }) => packets.length);
  await publish(publisher, ...["1", "2", "3", "4"].map((payload) => ({ payload })));
  await expect.poll(held).toBe(before.reduce((sum, count) => sum + count, 0) + 4);
  expect(members.map(({ packets }, index) => packets.length - (before[index] ?? 0))).toEqual([2, 2]);
});

it("drops live events for a client that does not read, and counts them", async () => {
  const [publisher, subscriber] = [await connect("p"), await connect("s")];
  await subscribe(subscriber, { topic: "live/a" });
  subscriber.pause();
  const payload = "x".repeat(50_000);
  while (counts.dropped === 0) await publish(publisher, { payload }, { payload }, { payload });
});

it("counts a refused publish, and serves later ones", async () => {
  const [publisher, subscriber] = [await connect("p"), await connect("s")];
  await subscribe(subscriber, { topic: "#" });
  await publish(publisher, { topic: "live/\u00e9" }, { payload: "after" });
  expect((await subscriber.next("publish")).payload.toString()).toBe("after");
  expect(counts.lost).toBe(1);
});
