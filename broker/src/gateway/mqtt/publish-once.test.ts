import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MqttWorld } from "./testing/mqtt-world.ts";
import { RawClient } from "./testing/raw-client.ts";

let world: MqttWorld;
beforeEach(async () => {
  world = await MqttWorld.start();
});
afterEach(() => world.stop());

async function count(): Promise<number> {
  return (await world.broker.state({ topic: "a", groupId: undefined })).sequence;
}

const message = { cmd: "publish", topic: "a", qos: 2, messageId: 7, payload: "x" };

describe.each([
  [4, {}],
  [5, { properties: { sessionExpiryInterval: 60 } }],
] as const)("a session of MQTT version %d that outlasts its connection", (version, fields) => {
  const connect = (): Promise<RawClient> => RawClient.connect(world.port, version, { clean: false, ...fields });

  /** Publishes the message, and disconnects before releasing it. */
  async function publishAndLeave(): Promise<void> {
    const client = await connect();
    client.send(message);
    await client.next("pubrec");
    client.destroy();
  }

  it("publishes a QoS 2 message once, even if it is sent again over another connection", async () => {
    await publishAndLeave();
    const second = await connect();
    second.send({ ...message, dup: true });
    expect(await second.next("pubrec")).toMatchObject({ messageId: 7 });
    expect(await count()).toBe(1);
    second.destroy();
  });

  it("publishes the next message of a packet identifier that was released over another connection", async () => {
    await publishAndLeave();
    const second = await connect();
    for (const reasonCode of [0, version === 5 ? 146 : 0]) {
      second.send({ cmd: "pubrel", messageId: 7 });
      expect((await second.next("pubcomp")).reasonCode ?? 0).toBe(reasonCode);
    }
    second.send(message);
    await second.next("pubrec");
    expect(await count()).toBe(2);
    second.destroy();
  });

  it("keeps the order of repeated and new messages", async () => {
    await publishAndLeave();
    const second = await connect();
    second.send({ ...message, dup: true });
    second.send({ ...message, messageId: 8, payload: "y", dup: true });
    second.send({ ...message, messageId: 9, payload: "z" });
    for (const messageId of [7, 8, 9]) expect(await second.next("pubrec")).toMatchObject({ messageId });
    expect(await count()).toBe(3);
    second.destroy();
  });
});

it("accepts a QoS 2 publish with the user properties of an event that the client received", async () => {
  const client = await RawClient.connect(world.port, 5, { clean: false, properties: { sessionExpiryInterval: 60 } });
  client.send({ cmd: "subscribe", messageId: 1, subscriptions: [{ topic: "a", qos: 0 }] });
  await client.next("suback");
  client.send({ ...message, properties: { userProperties: { mine: "1" } } });
  const both = [await client.nextAny(), await client.nextAny()];
  const properties = both.flatMap((packet) => (packet.cmd === "publish" ? [packet.properties] : []))[0];
  client.send({ ...message, topic: "b", messageId: 8, properties });
  expect(await client.next("pubrec")).toMatchObject({ messageId: 8, reasonCode: 0 });
  client.destroy();
});

it("ends the connection of a 3.1.1 client with too many unreleased messages, and publishes each other message once over the next connection", async () => {
  await world.stop();
  world = await MqttWorld.start({ limits: { publishKeysPerSessionMax: 20 } });
  const first = await RawClient.connect(world.port, 4, { clean: false });
  for (let messageId = 1; messageId <= 20; messageId += 1) first.send({ ...message, messageId });
  for (let messageId = 1; messageId <= 20; messageId += 1) await first.next("pubrec");
  for (let messageId = 21; messageId <= 30; messageId += 1) first.send({ ...message, messageId });
  await first.closed;
  const second = await RawClient.connect(world.port, 4, { clean: false });
  for (let messageId = 1; messageId <= 20; messageId += 1) second.send({ cmd: "pubrel", messageId });
  for (let messageId = 21; messageId <= 30; messageId += 1) second.send({ ...message, messageId, dup: true });
  for (let messageId = 1; messageId <= 20; messageId += 1) await second.next("pubcomp");
  for (let messageId = 21; messageId <= 30; messageId += 1)
    expect(await second.next("pubrec")).toMatchObject({ messageId });
  expect(await count()).toBe(30);
});
