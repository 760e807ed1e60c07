import { BrokerError } from "@stele/wire";
import mqttPacket from "mqtt-packet";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { BatchOutcome, Ledger } from "../../ports/ledger.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { MqttWorld } from "./testing/mqtt-world.ts";
import { RawClient } from "./testing/raw-client.ts";

let world: MqttWorld;
beforeEach(async () => {
  world = await MqttWorld.start();
});
afterEach(() => world.stop());

const subscription = (filter: string, qos = 1) => ({
  cmd: "subscribe",
  messageId: 1,
  subscriptions: [{ topic: filter, qos }],
});
const publication = (topic: string, fields: object = {}) => ({
  cmd: "publish",
  topic,
  payload: "x",
  qos: 1,
  messageId: 7,
  ...fields,
});

describe.each([4, 5] as const)("a client of level %s", (version) => {
  it("receives the messages of another client with each QoS, in order", async () => {
    const reader = await RawClient.connect(world.port, version, { clientId: "reader" });
    reader.send(subscription("a/#", 2));
    expect(await reader.next("suback")).toMatchObject({ granted: [2] });
    const writer = await RawClient.connect(world.port, version, { clientId: "writer" });
    writer.send(publication("a/b", { qos: 0, payload: "none" }));
    writer.send(publication("a/b", { qos: 1, payload: "one" }));
    writer.send(publication("a/b", { qos: 2, payload: "two", messageId: 8 }));
    expect(await writer.next("puback")).toMatchObject({ messageId: 7 });
    expect(await writer.next("pubrec")).toMatchObject({ messageId: 8 });
    writer.send({ cmd: "pubrel", messageId: 8 });
    expect(await writer.next("pubcomp")).toMatchObject({ messageId: 8 });
    const got = [await reader.next("publish"), await reader.next("publish"), await reader.next("publish")];
    expect(got.map(({ payload, qos }) => [String(payload), qos])).toEqual([
      ["none", 0],
      ["one", 1],
      ["two", 2],
    ]);
  });

  it("publishes a QoS 2 message once however often it is sent before its release", async () => {
    const writer = await RawClient.connect(world.port, version);
    for (const dup of [false, true]) writer.send(publication("a", { qos: 2, dup }));
    await writer.next("pubrec");
    await writer.next("pubrec");
    expect((await world.broker.state({ topic: "a", groupId: undefined })).sequence).toBe(1);
    writer.send({ cmd: "pubrel", messageId: 7 });
    await writer.next("pubcomp");
    writer.send(publication("a", { qos: 2 }));
    await writer.next("pubrec");
    expect((await world.broker.state({ topic: "a", groupId: undefined })).sequence).toBe(2);
  });

  it("resumes its session and gets the events published meanwhile", async () => {
    const kept = {
      clientId: "kept",
      clean: false,
      ...(version === 5 && { properties: { sessionExpiryInterval: 60 } }),
    };
    const first = await RawClient.connect(world.port, version, kept);
    first.send(subscription("a"));
    await first.next("suback");
    first.destroy();
    const writer = await RawClient.connect(world.port, version, { clientId: "writer" });
    writer.send(publication("a"));
    await writer.next("puback");
    const second = await RawClient.open(world.port, version);
    second.send({ cmd: "connect", keepalive: 0, ...kept });
    expect(await second.next("connack")).toMatchObject({ sessionPresent: true });
    expect(await second.next("publish")).toMatchObject({ topic: "a", qos: 1 });
  });

  it("gets a retained message with the retain flag when it subscribes, and later events without the flag", async () => {
    const client = await RawClient.connect(world.port, version);
    client.send(publication("a", { retain: true, qos: 2 }));
    await client.next("pubrec");
    client.send(subscription("#"));
    await client.next("suback");
    expect(await client.next("publish")).toMatchObject({ topic: "a", retain: true, qos: 1, dup: false });
    client.send(publication("a", { retain: true, payload: "", messageId: 8 }));
    const live = [await client.nextAny(), await client.nextAny()].find(({ cmd }) => cmd === "publish");
    expect(live).toMatchObject({ topic: "a", retain: false, payload: Buffer.alloc(0) });
    const later = await RawClient.connect(world.port, version, { clientId: "later" });
    later.send(subscription("a"));
    await later.next("suback");
    later.send(publication("b"));
    expect((await later.nextAny()).cmd).toBe("puback");
  });

  it("is served if its packets come byte by byte", async () => {
    const client = await RawClient.open(world.port, version);
    const bytes = [
      { cmd: "connect", protocolId: "MQTT", clientId: "slow", clean: true, keepalive: 0, protocolVersion: version },
      subscription("a"),
      publication("a", { dup: false, retain: false }),
    ].map((packet) => mqttPacket.generate(packet as never, { protocolVersion: version })); // the test gives the fields
    for (const byte of Buffer.concat(bytes)) client.sendBytes(Buffer.of(byte));
    await client.next("connack");
    await client.next("suback");
    const both = [(await client.nextAny()).cmd, (await client.nextAny()).cmd];
    expect(both.toSorted()).toEqual(["puback", "publish"]);
  });

  it("is disconnected without an answer if its bytes are not MQTT", async () => {
    const client = await RawClient.open(world.port, version);
    client.sendBytes(Buffer.from("GET / HTTP/1.1\r\n\r\n"));
    await client.closed;
    expect(client.packets).toEqual([]);
  });

  it("loses its connection when another client connects with the same identifier", async () => {
    const first = await RawClient.connect(world.port, version, { clientId: "same" });
    await RawClient.connect(world.port, version, { clientId: "same" });
    await first.closed;
    if (version === 5) expect(first.packets.at(-1)).toMatchObject({ cmd: "disconnect", reasonCode: 0x8e });
  });
});

it("sends an MQTT 5.0 client PUBREL for an unanswered QoS 2 message that exceeds the Maximum Packet Size of its new connection", async () => {
  const kept = { clientId: "kept", clean: false, properties: { sessionExpiryInterval: 60 } };
  const first = await RawClient.connect(world.port, 5, kept);
  first.send(subscription("a", 2));
  await first.next("suback");
  const writer = await RawClient.connect(world.port, 5, { clientId: "writer" });
  writer.send(publication("a", { qos: 2, payload: "x".repeat(1_000) }));
  const { messageId } = await first.next("publish");
  first.destroy();
  const second = await RawClient.open(world.port, 5);
  const properties = { ...kept.properties, maximumPacketSize: 200 };
  second.send({ cmd: "connect", keepalive: 0, ...kept, properties });
  expect(await second.next("connack")).toMatchObject({ sessionPresent: true });
  expect(await second.nextAny()).toMatchObject({ cmd: "pubrel", messageId });
});

describe("a refused publish", () => {
  it("gives an MQTT 5.0 client the catalogue's code in the reason string", async () => {
    const client = await RawClient.connect(world.port, 5);
    client.send(publication("ümlaut"));
    const answer = await client.next("puback");
    expect(answer.reasonCode).toBe(0x90);
    expect(answer.properties?.reasonString).toMatch(/^100106 /);
  });

  it("closes the connection of an MQTT 3.1.1 client, and is never acknowledged", async () => {
    const client = await RawClient.connect(world.port, 4);
    client.send(publication("ümlaut"));
    await client.closed;
    expect(client.packets.map(({ cmd }) => cmd)).toEqual(["connack"]);
  });
});

it("replaces a filter of a session at the limit of filters, and refuses a new one", async () => {
  const client = await RawClient.connect(world.port, 5);
  const subscriptions = Array.from({ length: 1_000 }, (_, index) => ({ topic: `f${index}`, qos: 0 }));
  client.send({ cmd: "subscribe", messageId: 1, subscriptions });
  await client.next("suback");
  const more = ["f7", "new"].map((topic) => ({ topic, qos: 1 }));
  client.send({ cmd: "subscribe", messageId: 2, subscriptions: more });
  expect(await client.next("suback")).toMatchObject({ granted: [1, 0x97] });
});

it("answers a packet that repeats a filter as if it were two packets, [MQTT-3.8.4-5], [MQTT-3.10.4-6]", async () => {
  const writer = await RawClient.connect(world.port, 5, { clientId: "writer" });
  writer.send(publication("a", { retain: true, payload: "retained" }));
  await writer.next("puback");
  const client = await RawClient.connect(world.port, 5);
  const subscriptions = [2, 1].map((rh) => ({ topic: "a", qos: 2 - rh, rh })); // the second replaces the first
  client.send({ cmd: "subscribe", messageId: 1, subscriptions });
  expect(await client.next("suback")).toMatchObject({ granted: [0, 1] });
  writer.send(publication("a", { payload: "live" }));
  expect(await client.next("publish")).toMatchObject({ payload: Buffer.from("live"), qos: 1 });
  client.send({ cmd: "unsubscribe", messageId: 2, unsubscriptions: ["a/#/b", "a", "a"] });
  expect(await client.next("unsuback")).toMatchObject({ granted: [0x8f, 0, 0x11] });
});

it("gives each event of a share to one of its members, of either version, and no retained message", async () => {
  const writer = await RawClient.connect(world.port, 5, { clientId: "writer" });
  writer.send(publication("a", { retain: true, payload: "retained" }));
  await writer.next("puback");
  const members = [
    await RawClient.connect(world.port, 5, { clientId: "five" }),
    await RawClient.connect(world.port, 4, { clientId: "four" }),
  ] as const;
  for (const member of members) {
    member.send(subscription("$share/s/+"));
    expect(await member.next("suback")).toMatchObject({ granted: [1] });
  }
  for (const payload of ["1", "2"]) {
    writer.send(publication("a", { payload }));
    await writer.next("puback");
  }
  const [first, second] = [await members[0].next("publish"), await members[1].next("publish")];
  expect([String(first.payload), String(second.payload)].toSorted()).toEqual(["1", "2"]);
  members[1].destroy();
  expect(await members[0].next("publish")).toMatchObject({ payload: second.payload, dup: false });
});

it.each(["$share/s", "$share//a", "$share/+/a", "$share/s/"])("refuses the share %s", async (topic) => {
  const client = await RawClient.connect(world.port, 5);
  client.send(subscription(topic));
  expect(await client.next("suback")).toMatchObject({ granted: [0x8f] });
});

it.each([
  [0, ["publish", "publish"]],
  [1, ["publish"]],
  [2, []],
])("with retain handling %i, two SUBSCRIBEs of one filter get the retained messages %j", async (rh, expected) => {
  const client = await RawClient.connect(world.port, 5);
  client.send(publication("a", { retain: true }));
  await client.next("puback");
  const seen: string[] = [];
  for (const messageId of [1, 2]) {
    client.send({ cmd: "subscribe", messageId, subscriptions: [{ topic: "a", qos: 0, rh, rap: false }] });
    client.send(publication("end"));
    for (let cmd = ""; cmd !== "puback"; seen.push(cmd)) ({ cmd } = await client.nextAny());
  }
  expect(seen.filter((cmd) => cmd === "publish")).toEqual(expected);
});

it("keeps the retain flag for a subscription with Retain As Published", async () => {
  const client = await RawClient.connect(world.port, 5);
  client.send({ cmd: "subscribe", messageId: 1, subscriptions: [{ topic: "a", qos: 0, rap: true }] });
  await client.next("suback");
  client.send(publication("a", { retain: true, qos: 0, messageId: undefined }));
  expect(await client.next("publish")).toMatchObject({ retain: true });
});

it("does not send a retained message that has expired, and frees its place in the client's receive maximum", async () => {
  const client = await RawClient.connect(world.port, 5, { properties: { receiveMaximum: 1 } });
  const properties = { userProperties: { "svc-expires-at": "1" } };
  client.send(publication("a", { retain: true, properties }));
  await client.next("puback");
  client.send(publication("b", { retain: true, messageId: 8 }));
  await client.next("puback");
  client.send(subscription("#"));
  await client.next("suback");
  expect(await client.next("publish")).toMatchObject({ topic: "b", retain: true });
});

describe("a will that could not be published is refused with its CONNECT", () => {
  it.each([
    ["a topic name that breaks the rules", { topic: "ümlaut" }, 0x90],
    ["extensions that are too long", { properties: { contentType: "x".repeat(60_000) } }, 0x97],
  ])("%s", async (_, fields, reasonCode) => {
    const client = await RawClient.open(world.port, 5);
    const will = { topic: "will", payload: "x", qos: 1, retain: false, ...fields };
    client.send({ cmd: "connect", clientId: "raw", clean: true, keepalive: 0, will });
    expect(await client.next("connack")).toMatchObject({ reasonCode });
    await client.closed;
  });
});

it.each(["no group", "other"])("a CONNECT that names the group %j is refused for the group", async (groupId) => {
  const client = await RawClient.open(world.port, 5);
  client.send({
    cmd: "connect",
    clientId: "raw",
    clean: true,
    keepalive: 0,
    properties: { userProperties: { groupId } },
  });
  const { reasonCode, properties } = await client.next("connack");
  expect([reasonCode, properties?.reasonString]).toEqual([0x83, expect.stringContaining(groupId)]);
});

it("answers a publish by alias like one to the alias's latest name, even if the broker refuses that name", async () => {
  const client = await RawClient.connect(world.port, 5);
  const properties = { topicAlias: 1 };
  const answerTo = async (topic: string): Promise<number | undefined> => {
    client.send(publication(topic, { properties }));
    return (await client.next("puback")).reasonCode;
  };
  expect(await answerTo("a")).toBe(0);
  expect(await answerTo("\u00fcmlaut")).toBe(0x90);
  client.send(publication("", { properties, qos: 0 })); // Lost without an answer, like a publish to that name.
  expect(await answerTo("")).toBe(0x90);
  expect((await world.broker.state({ topic: "a", groupId: undefined })).sequence).toBe(1);
  expect([await answerTo("a"), await answerTo("")]).toEqual([0, 0]);
});

describe("a packet that the standard forbids ends the connection with its reason code", () => {
  it.each([
    ["a second CONNECT, [MQTT-3.1.0-2]", { cmd: "connect", clientId: "raw", clean: true, keepalive: 0 }, 0x82],
    ["a topic alias above the maximum", publication("a", { properties: { topicAlias: 101 } }), 0x94],
    ["an unknown topic alias", publication("", { properties: { topicAlias: 1 } }), 0x82],
    ["AUTH", { cmd: "auth", reasonCode: 0x19, properties: { authenticationMethod: "x" } }, 0x82],
  ])("%s", async (_, packet, reasonCode) => {
    const client = await RawClient.connect(world.port, 5);
    client.send(packet);
    expect(await client.next("disconnect")).toMatchObject({ reasonCode });
    await client.closed;
  });
});

it.each([
  [4, ["connack"]],
  [5, ["connack", "disconnect"]],
] as const)("ends the connection for a second CONNECT of an unknown version, level %s", async (version, answers) => {
  const client = await RawClient.connect(world.port, version);
  client.sendBytes(Buffer.of(0x10, 13, 0, 4, ...Buffer.from("MQTT"), 16, 2, 0, 0, 0, 1, 0x78));
  await client.closed;
  expect(client.packets.map(({ cmd }) => cmd)).toEqual(answers);
});

/** Restarts the world with a ledger that neither appends nor gives `outcome` until the returned gate is resolved. */
async function holding(outcome?: () => Promise<readonly BatchOutcome[]>) {
  const gate = createDeferred<void>();
  await world.stop();
  world = await MqttWorld.start({
    change: (ledger) => {
      const append = ledger.append.bind(ledger);
      const held: Ledger["append"] = async (batches, signal) => {
        await gate.promise;
        return outcome === undefined ? append(batches, signal) : outcome();
      };
      ledger.append = held;
    },
  });
  await world.broker.open({ topic: "a", groupId: undefined });
  return gate;
}

it("publishes everything that a client sent before its DISCONNECT, even to topics that have yet to be opened, and publishes no will", async () => {
  const gate = createDeferred<void>();
  await world.stop();
  world = await MqttWorld.start({
    change: (ledger) => {
      const openTopic = ledger.openTopic.bind(ledger);
      ledger.openTopic = async (name, signal) => {
        await gate.promise;
        return openTopic(name, signal);
      };
    },
  });
  const will = { topic: "will", payload: "lost", qos: 1 as const, retain: false };
  const client = await RawClient.connect(world.port, 5, { clientId: "leaving", will });
  for (const topic of ["one", "two"]) client.send(publication(topic, { qos: 0 }));
  client.send({ cmd: "disconnect" });
  client.finish();
  await RawClient.connect(world.port, 5, { clientId: "later" }); // the CONNACK shows that the end was seen
  gate.resolve();
  await client.closed;
  const writer = await RawClient.connect(world.port, 5, { clientId: "writer" });
  writer.send(publication("last"));
  await writer.next("puback");
  const sequenceOf = async (topic: string) => (await world.broker.state({ topic, groupId: undefined })).sequence;
  expect([await sequenceOf("one"), await sequenceOf("two")]).toEqual([1, 1]);
  expect(await world.broker.exist({ topic: "will", groupId: undefined })).toBe(false);
});

describe("an acknowledgement", () => {
  it("waits until the event is committed and indexed", async () => {
    const gate = await holding();
    const client = await RawClient.connect(world.port, 5);
    client.send(publication("a"));
    client.send({ cmd: "pingreq" });
    await client.next("pingresp");
    expect(client.packets.map(({ cmd }) => cmd)).toEqual(["connack", "pingresp"]);
    gate.resolve();
    expect(await client.next("puback")).toMatchObject({ messageId: 7, reasonCode: 0 });
    expect((await world.broker.state({ topic: "a", groupId: undefined })).sequence).toBe(1);
  });

  it("never comes for a publish whose outcome is unknown: the connection ends", async () => {
    const gate = await holding(() => Promise.reject(new BrokerError("transactionTimeout")));
    const client = await RawClient.connect(world.port, 5);
    client.send(publication("a"));
    gate.resolve();
    expect((await client.nextAny()).cmd).toBe("disconnect");
    await client.closed;
  });
});
