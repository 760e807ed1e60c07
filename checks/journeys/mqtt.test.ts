import { connectAsync, type IClientOptions, type MqttClient } from "mqtt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { type Receiver, startReceiver } from "../harness/receiver.ts";
import { createTempFolder, type TempFolder } from "../harness/temp-folder.ts";

const env = { STELE_MQTT_PORT: "0" };
const addressLine = /^ {2}MQTT +(mqtt:\S+)$/m;

function mqttAddressOf(broker: BrokerProcess): string {
  const [, address] = addressLine.exec(broker.stderr()) ?? [];
  if (address === undefined) throw new Error(`no MQTT address in the banner:\n${broker.stderr()}`);
  return address;
}

function connect(address: string, options: IClientOptions = {}): Promise<MqttClient> {
  return connectAsync(address, { reconnectPeriod: 0, ...options });
}

/** Resolves with the next `count` messages, in the order of their arrival. */
function collect(client: MqttClient, count: number): Promise<string[]> {
  return new Promise((resolve) => {
    const got: string[] = [];
    client.on("message", (topic, payload) => {
      got.push(`${topic} ${String(payload)}`);
      if (got.length === count) resolve(got);
    });
  });
}

let folder: TempFolder;
let broker: BrokerProcess;
let receiver: Receiver;
beforeAll(async () => {
  folder = createTempFolder();
  broker = await startBroker({ dataDir: folder.path, env });
  receiver = await startReceiver();
});
afterAll(async () => {
  await broker.stop();
  await receiver[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

describe.each([
  ["MQTT 3.1.1 over TCP", 4, "tcp"],
  ["MQTT 5.0 over TCP", 5, "tcp"],
  ["MQTT 3.1.1 over WebSocket", 4, "websocket"],
  ["MQTT 5.0 over WebSocket", 5, "websocket"],
] as const)("%s", (name, protocolVersion, transport) => {
  const address = (): string =>
    transport === "tcp" ? mqttAddressOf(broker) : `${broker.url.replace(/^http/, "ws")}/mqtt`;
  const topic = name.replaceAll(/[^A-Za-z0-9]/g, "-");

  it("the client publishes events for callbacks and getEvent, and receives events from REST, all in one order", async () => {
    const client = await connect(address(), { protocolVersion });
    await using rest = new Client(broker.url);
    const seen = collect(client, 3);
    await client.subscribeAsync(`${topic}/#`, { qos: 1 });
    await client.publishAsync(`${topic}/a`, "by MQTT", { qos: 1 });
    receiver.forget();
    await rest.subscribe({ topic: `${topic}/#`, url: receiver.url, offset: "OFFSET_FIRST" });
    await rest.publish(`${topic}/a`, "by REST");
    await client.publishAsync(`${topic}/a`, "again", { qos: 2 });
    expect(await seen).toEqual(["by MQTT", "by REST", "again"].map((text) => `${topic}/a ${text}`));
    const called = await receiver.waitForCount(3);
    expect(called.map(({ content }) => Buffer.from(content, "base64").toString())).toEqual([
      "by MQTT",
      "by REST",
      "again",
    ]);
    const event = await rest.getEvent(called[0]?.eventId ?? "");
    expect(Buffer.from(event.content, "base64").toString()).toBe("by MQTT");
    await client.endAsync();
  });
});

it.each([
  ["persistent", false],
  ["clean", true],
])("REST lists the filters of a %s session, and can remove one of them", async (name, clean) => {
  const topics = [`listed-${name}/a`, `listed-${name}/#`];
  const client = await connect(mqttAddressOf(broker), { clientId: `listed-${name}`, clean });
  await client.subscribeAsync(topics, { qos: 1 });
  const seen = collect(client, 1);
  await client.publishAsync(`listed-${name}/a`, "one", { qos: 1 });
  await seen;
  await using rest = new Client(broker.url);
  const entries = async () => {
    const all = Object.values(await rest.listSubscriptions()).flatMap((listing) => Object.values(listing));
    return all.filter(({ topicName }) => topics.includes(topicName));
  };
  const listed = await entries();
  expect(listed.map(({ interfaceType }) => interfaceType)).toEqual(["MQTT", "MQTT"]);
  for (const entry of listed) {
    expect(Number(entry.notifiedEventCount) + Number(entry.notifyingEventCount)).toBe(1);
  }
  const removed = listed.find(({ topicName }) => topicName.endsWith("#"));
  expect(await rest.unSubscribe(removed?.subscribeId ?? "")).toBe(true);
  expect((await entries()).map(({ topicName }) => topicName)).toEqual([`listed-${name}/a`]);
  const next = collect(client, 1);
  await client.publishAsync(`listed-${name}/b`, "not matched any more", { qos: 1 });
  await client.publishAsync(`listed-${name}/a`, "two", { qos: 1 });
  expect(await next).toEqual([`listed-${name}/a two`]);
  await client.endAsync();
});

it("the broker has every acknowledged event after kill -9, in order", async () => {
  const client = await connect(mqttAddressOf(broker), { protocolVersion: 5 });
  client.on("error", () => {});
  const acknowledged: number[] = [];
  const publishes = Array.from({ length: 300 }, async (_, index) => {
    await client.publishAsync("killed", String(index), { qos: 1 });
    acknowledged.push(index);
  });
  const all = Promise.allSettled(publishes);
  await Promise.any(publishes);
  await broker.kill();
  client.end(true);
  await Promise.race([all, new Promise<void>((resolve) => client.once("close", () => resolve()))]);
  broker = await startBroker({ dataDir: folder.path, env });
  receiver.forget();
  await using rest = new Client(broker.url);
  const { sequenceNumber } = await rest.state("killed");
  await rest.subscribe({ topic: "killed", url: receiver.url, offset: "OFFSET_FIRST" });
  const events = await receiver.waitForCount(sequenceNumber);
  const contents = events.map(({ content }) => Number(Buffer.from(content, "base64").toString()));
  expect(contents).toEqual(contents.toSorted((left, right) => left - right));
  expect(contents).toEqual(expect.arrayContaining(acknowledged));
  expect(acknowledged.length).toBeGreaterThan(0);
});
