import { connectAsync } from "mqtt";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Context } from "../conformance/stomp/context.ts";
import { framesOf, type TailFrame } from "../harness/tail-client.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";
import { AsyncDocument } from "./asyncapi/document.ts";
import { Webhooks } from "./asyncapi/webhooks.ts";

const ports = { STELE_MQTT_PORT: "0", STELE_STOMP_PORT: "0" };
const running = useWorld(embeddedWorld, {
  env: { ...ports, STELE_MQTT_PAYLOAD: "event", STELE_CALLBACK_CONSENT: "require" },
});
/** A broker whose MQTT payload is the event's content. */
const contentPayload = useWorld(embeddedWorld, { env: ports });
let webhooks: Webhooks;
let document: AsyncDocument;

async function readDocument(world: typeof running): Promise<AsyncDocument> {
  const answer = await world().client.http.send({ method: "GET", path: "/asyncapi.json" });
  return new AsyncDocument(answer.text);
}

beforeAll(async () => {
  webhooks = await Webhooks.start();
  document = await readDocument(running);
});
afterAll(() => webhooks[Symbol.asyncDispose]());

const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const publishTwo = async (topic: string) => {
  const { client } = running();
  const extensions = { "svc-format": "json", "svc-order-id": "7", "svc-traceparent": trace };
  await client.publish(topic, '{"n":1}', extensions);
  await client.publish(topic, '{"n":2}', {});
};

/** Subscribes over REST or JSON-RPC. */
async function subscribe(isRpc: boolean, params: Readonly<Record<string, unknown>>): Promise<void> {
  const call = { jsonrpc: "2.0", id: "1", method: "subscribe", params };
  const { text } = await running().client.http.send({
    method: "POST",
    path: isRpc ? "/jsonrpc" : "/rest/subscribe",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(isRpc ? call : params),
  });
  expect(text).not.toContain('"code"');
}

describe("callbacks match the AsyncAPI document", () => {
  const batch = { batch: 2, batchMs: 60_000 };
  it.each([
    {
      operation: "notify",
      isRpc: false,
      options: { secret: `whsec_${"A".repeat(32)}` },
      expected: ["ping", "notification", "notification"],
    },
    { operation: "notify", isRpc: false, options: batch, expected: ["ping", "notificationBatch"] },
    { operation: "notifyRpc", isRpc: true, options: {}, expected: ["rpcPing", "rpcNotification", "rpcNotification"] },
    { operation: "notifyRpc", isRpc: true, options: batch, expected: ["rpcPing", "rpcNotificationBatch"] },
    {
      operation: "notifyCloudEvent",
      isRpc: false,
      options: { format: "cloudevents" },
      expected: ["cloudEventPing", "cloudEvent", "cloudEvent"],
    },
    {
      operation: "notifyCloudEvent",
      isRpc: true,
      options: { format: "cloudevents", ...batch },
      expected: ["cloudEventPing", "cloudEventBatch"],
    },
  ])(
    "callbacks of $operation with $options match the AsyncAPI document",
    async ({ operation, isRpc, options, expected }) => {
      const name = `${operation}-${isRpc}-${"batch" in options}`;
      await running().client.open(name);
      await subscribe(isRpc, { topic: name, url: webhooks.urlOf(name), ...options });
      await publishTwo(name);
      const callbacks = await webhooks.take(name, expected.length);
      const matches = callbacks.map(({ headers, body }) => {
        const payload: unknown = JSON.parse(body.toString());
        return document.matchesOf(operation, { contentType: headers["content-type"], headers, payload });
      });
      expect(matches).toEqual(expected.map((one) => [one]));
      const signed = callbacks.map(({ headers }) => "webhook-signature" in headers);
      expect(signed).toEqual(callbacks.map(() => "secret" in options));
    },
  );

  it("a CloudEvent in binary mode matches the AsyncAPI document, but not if the header of an attribute is missing", async () => {
    await running().client.open("binary");
    await subscribe(false, { topic: "binary", url: webhooks.urlOf("binary"), format: "cloudevents-binary" });
    await running().client.publish("binary", "bytes", {});
    const [, callback] = await webhooks.take("binary", 2);
    const headers = callback?.headers ?? {};
    const arrived = { contentType: headers["content-type"], headers, payload: callback?.body.toString() };
    expect(document.matchesOf("notifyCloudEvent", arrived)).toEqual(["cloudEventBinary"]);
    const { "ce-sequence": _sequence, ...without } = headers;
    expect(document.matchesOf("notifyCloudEvent", { ...arrived, headers: without })).toEqual([]);
  });
});

describe("tails match the AsyncAPI document", () => {
  it.each([
    ["interface", "tailEvent"],
    ["cloudevents", "tailCloudEvent"],
  ])("a tail over SSE in the format %s matches the AsyncAPI document", async (format, name) => {
    await running().client.open(format);
    await publishTwo(format);
    const url = new URL(`/tail?topic=${format}&after=OFFSET_FIRST&format=${format}`, document.urlOf("http"));
    const frames: TailFrame[] = [];
    for await (const frame of framesOf((await request(url)).body)) {
      if (frame.data !== "") frames.push(frame);
      if (frames.length === 2) break;
    }
    for (const { id, data } of frames) {
      const arrived = { headers: { id }, payload: JSON.parse(data) as unknown };
      expect(document.matchesOf("tailEvents", arrived)).toEqual([name]);
    }
  });
});

describe("MQTT and STOMP messages match the AsyncAPI document", () => {
  it.each(["mqtt", "mqttWebSocket"])(
    "if mqttPayload is event, an MQTT message of the server %s matches the AsyncAPI document",
    async (server) => {
      const client = await connectAsync(document.urlOf(server).href, { protocolVersion: 5, reconnectPeriod: 0 });
      const arrived = new Promise<unknown>((resolve) => {
        client.on("message", (_topic, payload, { properties = {} }) =>
          resolve({ contentType: properties.contentType, payload: JSON.parse(payload.toString()) as unknown }),
        );
      });
      await client.subscribeAsync(server, { qos: 1 });
      await client.publishAsync(server, "21 degrees", { qos: 1, properties: { userProperties: { "svc-a": "b" } } });
      const message = (await arrived) as Parameters<AsyncDocument["matchesOf"]>[1]; // As `arrived` resolves.
      expect(document.matchesOf("mqttDeliver", message)).toEqual(["mqttEvent"]);
      expect(document.matchesOf("mqttDeliver", { ...message, payload: "21 degrees" })).toEqual([]);
      await client.endAsync();
    },
  );

  it("if mqttPayload is raw, the user properties of an MQTT message match the AsyncAPI document", async () => {
    const own = await readDocument(contentPayload);
    const client = await connectAsync(own.urlOf("mqtt").href, { protocolVersion: 5, reconnectPeriod: 0 });
    const arrived = new Promise<object>((resolve) => {
      client.on("message", (_topic, _payload, { properties = {} }) => resolve({ ...properties.userProperties }));
    });
    await client.subscribeAsync("raw", { qos: 1 });
    await client.publishAsync("raw", "21 degrees", { qos: 1, properties: { userProperties: { place: "boiler" } } });
    const headers = await arrived;
    expect(headers).toMatchObject({ place: "boiler", "svc-sequence": "1" });
    expect(own.matchesOf("mqttDeliver", { headers, payload: "21 degrees" })).toEqual(["mqttEvent"]);
    const wrong = { ...headers, "svc-sequence": "first" };
    expect(own.matchesOf("mqttDeliver", { headers: wrong, payload: "21 degrees" })).toEqual([]);
    await client.endAsync();
  });

  it("a STOMP MESSAGE, and the RECEIPT and ERROR of a SEND, match the AsyncAPI document", async () => {
    const port = Number(document.urlOf("stomp").port);
    const addresses = { tcp: port, websocket: document.urlOf("stompWebSocket").href };
    const context = new Context({ addresses, transport: "tcp", version: "1.2", cut: "frames", name: "" });
    const peer = await context.connect();
    await peer.ask("SUBSCRIBE", { id: "0", destination: "stomp/#", ack: "client" });
    const receipt = await peer.ask("SEND", { destination: "stomp/a", "content-type": "text/plain" }, "21 degrees");
    const message = await peer.next("MESSAGE");
    expect(message.headers).toMatchObject({ "content-type": "text/plain", subscription: "0" });
    const { headers, body } = message;
    expect(document.matchesOf("stompDeliver", { headers, payload: body.toString() })).toEqual(["stompMessage"]);
    const { eventId: _eventId, ...without } = headers;
    expect(document.matchesOf("stompDeliver", { headers: without, payload: "" })).toEqual([]);
    expect(document.messageFits("stompReceipt", { headers: receipt.headers, payload: "" })).toBe(true);
    peer.send("SEND", { destination: "no+topic", receipt: "r" }, "x");
    const error = await peer.next("ERROR");
    expect(error.headers).toMatchObject({ code: "100106", "receipt-id": "r" });
    expect(document.messageFits("stompError", { headers: error.headers, payload: error.body.toString() })).toBe(true);
    context.close();
  });
});

// Runs last, because it stops a broker of the other tests.
it("a tail of JSON lines matches the AsyncAPI document, up to the line that announces the end", async () => {
  const world = contentPayload();
  await world.client.open("lines");
  await world.client.publish("lines", "1", {});
  const { body } = await request(`${world.broker.url}/tail?topic=lines&after=OFFSET_FIRST`, {
    headers: { accept: "application/x-ndjson" },
  });
  let text = "";
  let stopping: Promise<unknown> | undefined;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    text += chunk.toString();
    if (text.includes("\n")) stopping ??= world.stop();
  }
  await stopping;
  const lines = text.trim().split("\n");
  const matches = lines.map((line) => document.matchesOf("tailLines", { payload: JSON.parse(line) as unknown }));
  expect(matches).toEqual([["tailEvent"], ["tailEndLine"]]);
});
