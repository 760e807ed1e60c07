import { connectAsync } from "mqtt";
import { expect, it } from "vitest";
import { Context } from "../conformance/stomp/context.ts";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { portOf } from "../harness/listener-port.ts";
import { startReceiver } from "../harness/receiver.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";

const topic = "extensions/all";

/** Some protocols carry most of these extensions in fields of their own. */
const extensions = {
  "svc-note": "a: b",
  "svc-content-type": "text/plain",
  "svc-response-topic": "answers",
  "svc-correlation-data": "AQI=",
  "svc-payload-format": "1",
  "svc-expires-at": String(Date.now() + 3_600_000),
  "svc-qos": "2",
  "svc-retain": "true",
  "svc-origin": "somebody",
  "svc-user-colour": "blue",
};

type Publish = (broker: BrokerProcess) => Promise<void>;

const publishBy: Readonly<Record<string, Publish>> = {
  REST: async (broker) => {
    await using client = new Client(broker.url);
    const query = new URLSearchParams({ topic, content: "x", ...extensions });
    await client.http.send({ method: "GET", path: `/rest/publish?${query}` });
  },
  "JSON-RPC": async (broker) => {
    await using client = new Client(broker.url);
    await client.publish(topic, "x", extensions);
  },
  MQTT: async (broker) => {
    const mqtt = await connectAsync(`mqtt://127.0.0.1:${portOf(broker, "MQTT")}`, { protocolVersion: 5 });
    await mqtt.publishAsync(topic, "x", { qos: 1, properties: { userProperties: extensions } });
    await mqtt.endAsync();
  },
  STOMP: async (broker) => {
    const stomp = createStomp(broker);
    await stomp.publish("x", extensions);
    stomp.close();
  },
};

it("every protocol delivers extensions with the same values, whichever protocol published them", async () => {
  using folder = createTempFolder();
  await using broker = await startBroker({
    dataDir: folder.path,
    env: { STELE_MQTT_PORT: "0", STELE_STOMP_PORT: "0" },
  });
  await using client = new Client(broker.url);
  await client.open(topic);
  await using rest = await startReceiver();
  await using rpc = await startReceiver();
  await client.subscribe({ topic, url: rest.url });
  await client.subscribeByRpc({ topic, url: rpc.url });
  const mqtt = await connectAsync(`mqtt://127.0.0.1:${portOf(broker, "MQTT")}`, { protocolVersion: 5 });
  const byMqtt: unknown[] = [];
  mqtt.on("message", (_, __, { properties = {} }) => {
    const { "svc-note": note, colour } = properties.userProperties ?? {};
    const { contentType, responseTopic } = properties;
    byMqtt.push({ note, colour, contentType, responseTopic });
  });
  await mqtt.subscribeAsync(topic, { qos: 1 });
  const stomp = createStomp(broker);
  const subscriber = await stomp.subscribed();
  for (const [protocol, publish] of Object.entries(publishBy)) {
    await publish(broker);
    const { headers } = await subscriber.next("MESSAGE");
    expect(headers, protocol).toMatchObject({ ...extensions, "content-type": "text/plain", colour: "blue" });
    expect((await client.getEvent(headers["eventId"] ?? "")).extensions, protocol).toEqual(extensions);
  }
  const count = Object.keys(publishBy).length;
  for (const receiver of [rest, rpc]) {
    const found = (await receiver.waitForCount(count)).map((event) => event.extensions);
    expect(found).toEqual(Array.from({ length: count }, () => extensions));
  }
  await until(`${count} events have arrived over MQTT`, () => byMqtt.length >= count);
  // MQTT carries some extensions in properties of its own; see docs/mqtt.md.
  const expected = { note: "a: b", colour: "blue", contentType: "text/plain", responseTopic: "answers" };
  expect(byMqtt).toEqual(Array.from({ length: count }, () => expected));
  await mqtt.endAsync();
  stomp.close();
});

function createStomp(broker: BrokerProcess): Context {
  const addresses = { tcp: portOf(broker, "STOMP"), websocket: "" };
  return new Context({ addresses, transport: "tcp", version: "1.2", cut: "frames", name: topic });
}
