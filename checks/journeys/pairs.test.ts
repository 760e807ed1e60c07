import { randomUUID } from "node:crypto";
import { connectAsync, type MqttClient } from "mqtt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Context } from "../conformance/stomp/context.ts";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { Cluster } from "../harness/cluster.ts";
import { portOf } from "../harness/listener-port.ts";
import { hasPostgres, titleOf } from "../harness/postgres.ts";
import { startReceiver } from "../harness/receiver.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";
import type { Headers } from "./stomp/journey.ts";
import { RawClient } from "./stomp/raw-client.ts";

/** An event as a consumer sees it; the content is in hexadecimal. */
interface Seen {
  readonly eventId: string;
  readonly content: string;
}

interface Consumer extends AsyncDisposable {
  /** Waits for the first `count` events. */
  take(count: number): Promise<readonly Seen[]>;
}

/** A protocol over which the test publishes. */
interface PublishProtocol {
  readonly name: string;
  /** The contents that this protocol can carry. REST carries only text. */
  readonly takes: readonly Buffer[];
  /** Returns the eventId if the protocol's answer has one. */
  readonly publish: (content: Buffer) => Promise<string | undefined>;
}

const text = Buffer.from("größer \u{1F642}\0\r\n:\\");
/** Every value of a byte, in an order that is not valid UTF-8. */
const binary = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));

const env = { STELE_MQTT_PORT: "0", STELE_STOMP_PORT: "0" };
const title =
  "an event published through any protocol arrives through all protocols, with the same bytes, eventId and order";
const topic = "pairs/all";

it(title, async () => {
  using folder = createTempFolder();
  await using broker = await startBroker({ dataDir: folder.path, env });
  await checkPairs([broker]);
});

describe.runIf(hasPostgres)(titleOf("three nodes"), () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start({ env });
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  it(`between any two nodes, ${title}`, async () => {
    await checkPairs(cluster.nodes.map(({ broker }) => broker));
  });

  // Runs last, because it kills a node.
  it("a durable subscription of STOMP resumes on another node, even after kill -9", async () => {
    const own = "moves";
    const subscribeAt = (node: number, headers: Headers) => subscribeByStomp(cluster.nodes[node]?.broker, own, headers);
    const durable = { id: "durable", ack: "client", "svc-subscriptionId": randomUUID() };
    await cluster.client.open(own);
    const first = await subscribeAt(0, durable);
    await cluster.client.publish(own, "acknowledged");
    first.ack(await first.next());
    await first.disconnect();

    await cluster.client.publish(own, "not acknowledged");
    const second = await subscribeAt(1, durable);
    expect((await second.next()).body).toBe("not acknowledged");
    await cluster.nodes[1]?.kill();

    const third = await subscribeAt(2, durable);
    expect((await third.next()).body).toBe("not acknowledged");
    await cluster.nodes[2]?.client.publish(own, "after kill -9");
    expect((await third.next()).body).toBe("after kill -9");
    await third.disconnect();
  });
});

/** Connects to a node, and starts or resumes the subscription there. */
async function subscribeByStomp(broker: BrokerProcess | undefined, filter: string, headers: Headers) {
  if (broker === undefined) throw new Error("there is no such node");
  const client = new RawClient(portOf(broker, "STOMP"), "1.2");
  await client.connect();
  await client.subscribe(filter, headers);
  return client;
}

/** Checks that consumers of four protocols get the same events from publishers of four protocols. Spreads consumers and publishers over the brokers. */
async function checkPairs(brokers: readonly BrokerProcess[]): Promise<void> {
  const brokerOf = (index: number): BrokerProcess => {
    const broker = brokers[index % brokers.length];
    if (broker === undefined) throw new Error("there is no broker");
    return broker;
  };
  await using client = new Client(brokerOf(0).url);
  await client.open(topic);
  await using rest = await consumeByCallback(brokerOf(0), "subscribe");
  await using rpc = await consumeByCallback(brokerOf(1), "subscribeByRpc");
  await using mqtt = await consumeByMqtt(brokerOf(2));
  await using stomp = await consumeByStomp(brokerOf(3));
  const published = await publishByAll((index) => brokerOf(index + 4));
  const expected = await stomp.take(published.length);
  expect(expected).toEqual(published);
  for (const consumer of [rest, rpc, mqtt]) expect(await consumer.take(published.length)).toEqual(expected);
}

async function consumeByCallback(broker: BrokerProcess, subscribe: "subscribe" | "subscribeByRpc"): Promise<Consumer> {
  const client = new Client(broker.url);
  const receiver = await startReceiver();
  await client[subscribe]({ topic, url: receiver.url });
  return {
    take: async (count) =>
      (await receiver.waitForCount(count)).map(({ eventId, content }) => ({
        eventId,
        content: Buffer.from(content, "base64").toString("hex"),
      })),
    [Symbol.asyncDispose]: async () => {
      await client[Symbol.asyncDispose]();
      await receiver[Symbol.asyncDispose]();
    },
  };
}

async function consumeByMqtt(broker: BrokerProcess): Promise<Consumer> {
  const mqtt = await connectMqtt(broker);
  const seen: Seen[] = [];
  mqtt.on("message", (_, payload, { properties }) => {
    seen.push({ eventId: String(properties?.userProperties?.["svc-eventId"]), content: payload.toString("hex") });
  });
  await mqtt.subscribeAsync(topic, { qos: 1 });
  return {
    take: async (count) => {
      await until(`${count} events have arrived over MQTT`, () => seen.length >= count);
      return seen;
    },
    [Symbol.asyncDispose]: () => mqtt.endAsync(),
  };
}

async function consumeByStomp(broker: BrokerProcess): Promise<Consumer> {
  const context = createStomp(broker);
  const peer = await context.subscribed();
  return {
    take: async (count) => {
      const seen: Seen[] = [];
      while (seen.length < count) {
        const { headers, body } = await peer.next("MESSAGE");
        seen.push({ eventId: headers["eventId"] ?? "", content: body.toString("hex") });
      }
      return seen;
    },
    [Symbol.asyncDispose]: async () => context.close(),
  };
}

/** Publishes over each protocol in turn, and returns what consumers must see. Any eventId matches if the protocol's answer has none. */
async function publishByAll(brokerOf: (index: number) => BrokerProcess): Promise<readonly Seen[]> {
  await using rest = new Client(brokerOf(0).url);
  await using rpc = new Client(brokerOf(1).url);
  const mqtt = await connectMqtt(brokerOf(2));
  const stomp = createStomp(brokerOf(3));
  const publishes: readonly PublishProtocol[] = [
    { name: "REST", takes: [text], publish: (content) => publishByRest(rest, content) },
    {
      name: "JSON-RPC",
      takes: [text, binary],
      publish: async (content) => (await rpc.publish(topic, content)).eventId,
    },
    { name: "MQTT", takes: [text, binary], publish: (content) => publishByMqtt(mqtt, content) },
    { name: "STOMP", takes: [text, binary], publish: (content) => stomp.publish(content) },
  ];
  const published: Seen[] = [];
  for (let round = 0; round < 3; round += 1) {
    for (const { name, takes, publish } of publishes) {
      for (const bytes of takes) {
        const content = Buffer.concat([Buffer.from(`${name} ${round}`), bytes]);
        const eventId = (await publish(content)) ?? expect.any(String);
        published.push({ eventId, content: content.toString("hex") });
      }
    }
  }
  await mqtt.endAsync();
  stomp.close();
  return published;
}

async function publishByRest({ http }: Client, content: Buffer): Promise<string> {
  const query = new URLSearchParams({ topic, content: content.toString() });
  const answer = await http.send({ method: "GET", path: `/rest/publish?${query}` });
  return (answer.json() as { readonly eventId: string }).eventId;
}

/** Returns no eventId, because MQTT's acknowledgement has no room for it. */
async function publishByMqtt(mqtt: MqttClient, content: Buffer): Promise<undefined> {
  await mqtt.publishAsync(topic, content, { qos: 1 });
}

function connectMqtt(broker: BrokerProcess): Promise<MqttClient> {
  return connectAsync(`mqtt://127.0.0.1:${portOf(broker, "MQTT")}`, { protocolVersion: 5 });
}

function createStomp(broker: BrokerProcess): Context {
  const addresses = { tcp: portOf(broker, "STOMP"), websocket: "" };
  return new Context({ addresses, transport: "tcp", version: "1.2", cut: "frames", name: topic });
}
