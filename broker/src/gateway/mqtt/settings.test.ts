import { afterEach, expect, it } from "vitest";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { reason } from "./reason-codes.ts";
import type { MqttSettings } from "./settings.ts";
import { MqttWorld } from "./testing/mqtt-world.ts";
import { RawClient } from "./testing/raw-client.ts";

let world: MqttWorld | undefined;
afterEach(async () => {
  await world?.stop();
  world = undefined;
});

async function start(settings: Partial<MqttSettings>): Promise<number> {
  world = await MqttWorld.start({ settings });
  return world.port;
}

/** The properties of the CONNACK to an MQTT 5.0 client. */
async function connackOf(settings: Partial<MqttSettings>, keepalive: number) {
  const client = await RawClient.open(await start(settings), 5);
  client.send({ cmd: "connect", clientId: "raw", clean: true, keepalive });
  return (await client.next("connack")).properties;
}

function publication(messageId: number, qos: 1 | 2) {
  return { cmd: "publish", topic: "a", payload: "x", qos, messageId };
}

it("sends an MQTT 5.0 client its limits in CONNACK", async () => {
  const properties = await connackOf({ receiveMax: 20, topicAliasMax: 2, packetBytesMax: 65_000 }, 30);
  expect(properties).toMatchObject({ receiveMaximum: 20, topicAliasMaximum: 2, maximumPacketSize: 65_000 });
  expect(properties).not.toHaveProperty("serverKeepAlive");
});

it.each([
  [0, 60],
  [120, 60],
])("answers keep-alive %s with server keep-alive %s, the longest allowed", async (asked, answered) => {
  expect((await connackOf({ keepAliveSecondsMax: 60 }, asked))?.serverKeepAlive).toBe(answered);
});

it("sends no server keep-alive to a client whose keep-alive is below the longest allowed", async () => {
  expect((await connackOf({ keepAliveSecondsMax: 60 }, 30))?.serverKeepAlive).toBeUndefined();
});

it("accepts an expiry in DISCONNECT if CONNECT gave one too, although the broker keeps no session, section 3.14.2.2.2", async () => {
  const properties = { sessionExpiryInterval: 60 };
  const client = await RawClient.connect(await start({ sessionExpirySecondsMax: 0 }), 5, { properties });
  client.send({ cmd: "disconnect", reasonCode: 0, properties });
  await client.closed;
  expect(client.packets.map(({ cmd }) => cmd)).toEqual(["connack"]); // and no DISCONNECT, after which the will would be published
});

it("counts a QoS 2 publish against Receive Maximum until it is released, [MQTT-3.3.4-7]", async () => {
  const client = await RawClient.connect(await start({ receiveMax: 2 }), 5);
  for (const id of [1, 2]) {
    client.send(publication(id, 2));
    await client.next("pubrec");
  }
  client.send({ cmd: "pubrel", messageId: 1 });
  await client.next("pubcomp");
  client.send(publication(3, 2));
  await client.next("pubrec");
  client.send(publication(4, 1));
  expect(await client.next("disconnect")).toMatchObject({ reasonCode: reason.receiveMaximumExceeded });
});

it("answers a repeat of a QoS 2 publish although Receive Maximum is used up", async () => {
  const client = await RawClient.connect(await start({ receiveMax: 1 }), 5);
  for (const dup of [false, true]) {
    client.send({ ...publication(1, 2), dup });
    expect(await client.next("pubrec")).toMatchObject({ messageId: 1 });
  }
});

it("counts no publish of QoS 0 against Receive Maximum", async () => {
  const client = await RawClient.connect(await start({ receiveMax: 1 }), 5);
  for (let count = 0; count < 3; count += 1) client.send({ cmd: "publish", topic: "a", payload: "x", qos: 0 });
  client.send(publication(1, 1));
  expect(await client.next("puback")).toMatchObject({ messageId: 1 });
});

it("refuses a packet above Maximum Packet Size from its header", async () => {
  const client = await RawClient.connect(await start({ packetBytesMax: 1_024 }), 5);
  client.sendBytes(Buffer.of(0x30, 0xff, 0x07)); // 1,023 bytes follow a header of 3
  expect(await client.next("disconnect")).toMatchObject({ reasonCode: 0x95 });
});

it.each([
  [5, reason.notAuthorized, 0x87],
  [5, reason.unspecified, 0x80],
  [4, reason.notAuthorized, 0x80],
] as const)(
  "refuses the filters of filtersRefused, to a client of level %s with denialCode %s",
  async (version, denialCode, expected) => {
    const filtersRefused = ["no/+", "never", "deep/+/#", "+/gone/"].map(parseTopicFilter);
    const client = await RawClient.connect(await start({ filtersRefused, denialCode }), version);
    const refused = ["no/x", "no/+", "never", "deep/+", "deep/x/#", "+/gone/"];
    const granted = ["no/#", "nothing", "deep/#", "no/+/", "+/other/"];
    const subscriptions = [...refused, ...granted].map((topic) => ({ topic, qos: 1 }));
    client.send({ cmd: "subscribe", messageId: 1, subscriptions });
    const codes = [...refused.map(() => expected), ...granted.map(() => 1)];
    expect(await client.next("suback")).toMatchObject({ granted: codes });
  },
);

it("leaves out the event's identifier, sequence and block without hasEventPlace", async () => {
  const client = await RawClient.connect(await start({ hasEventPlace: false }), 5);
  client.send({ cmd: "subscribe", messageId: 1, subscriptions: [{ topic: "a", qos: 0 }] });
  await client.next("suback");
  client.send({ ...publication(1, 1), qos: 0, properties: { userProperties: { mine: "1" } } });
  expect((await client.next("publish")).properties?.userProperties).toEqual({ mine: "1" });
});

it("closes a connection without a CONNECT after the time-out", async () => {
  const client = await RawClient.open(await start({ connectTimeoutMs: 100 }), 5);
  client.sendBytes(Buffer.of(0x10, 0x20)); // begins, and never ends
  await client.closed;
  expect(client.packets).toEqual([]);
});

it("with the setting payload: event, publishes the payload as content, and delivers the event as JSON", async () => {
  const client = await RawClient.connect(await start({ payload: "event" }), 4);
  client.send({ cmd: "subscribe", messageId: 1, subscriptions: [{ topic: "a", qos: 1 }] });
  await client.next("suback");
  client.send(publication(2, 1));
  const both = [await client.nextAny(), await client.nextAny()];
  const delivered = both.find(({ cmd }) => cmd === "publish");
  expect(JSON.parse(String(delivered?.cmd === "publish" ? delivered.payload : ""))).toEqual({
    topic: "a",
    content: Buffer.from("x").toString("base64"),
    extensions: {},
    eventId: expect.any(String),
  });
});
