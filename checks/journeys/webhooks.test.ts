import { verifyWebhook } from "@stele/client/webhook";
import { describe, expect, it } from "vitest";
import type { Params } from "../harness/apis.ts";
import { startReceiver } from "../harness/receiver.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld, type RunningWorld } from "../harness/world.ts";
import { createAsymmetric, createSymmetric, type Keys } from "./webhooks/keys.ts";
import { createOrderSender } from "./webhooks/order-sender.ts";
import { languages, type SeenEvent, useWebhookReceiver, type WebhookReceiver } from "./webhooks/webhook-receiver.ts";

interface Form {
  readonly name: string;
  /** The client's method that creates the subscription, over REST or JSON-RPC. */
  readonly subscribe: "subscribe" | "subscribeByRpc";
  readonly params: Params;
  /** Content type of each request. */
  readonly types: readonly string[];
  /** Kind of each request, as the receiver reads it. */
  readonly kind: string;
  /** Number of events in each request. */
  readonly sizes: readonly number[];
}

const json = "application/json";
const [threeRequests, oneRequest] = [[1, 1, 1], [3]];
const rest = { subscribe: "subscribe", kind: "event" } as const;
const rpc = { subscribe: "subscribeByRpc", kind: "onEvent" } as const;
const plain = { types: [json, json, json], sizes: threeRequests, params: {} };
// A full batch is sent at once, so the test does not wait for batchMs.
const batch = { types: [json], sizes: oneRequest, params: { batch: 3, batchMs: 60_000 } };
const structured = {
  ...plain,
  subscribe: "subscribe",
  kind: "cloudevents",
  types: plain.types.map(() => "application/cloudevents+json"),
  params: { format: "cloudevents" },
} as const;
const binaryParams = { format: "cloudevents-binary" };

const forms: readonly Form[] = [
  { name: "RESTful callbacks", ...rest, ...plain },
  { name: "JsonRPC callbacks", ...rpc, ...plain },
  { name: "RESTful batches", ...rest, ...batch },
  { name: "JsonRPC batches", ...rpc, ...batch, kind: "onEvents" },
  { name: "structured CloudEvents", ...structured },
  { name: "structured CloudEvents of a JSON-RPC subscription", ...structured, subscribe: "subscribeByRpc" },
  { name: "binary CloudEvents, which the secret makes structured", ...structured, params: binaryParams },
  {
    name: "batches of CloudEvents",
    ...structured,
    ...batch,
    types: ["application/cloudevents-batch+json"],
    params: { ...structured.params, ...batch.params },
  },
];

/** One content for each type of data that a CloudEvent may have: JSON, text and bytes. */
const contents = [
  { content: Buffer.from('{"n":1,"s":"grün \u{1F642}"}'), format: "json", type: json },
  { content: Buffer.from("grüße \u{1F642}\r\n"), format: "text/plain", type: "text/plain" },
  { content: Buffer.from([0xff, 0x00, 0xfe]), format: "application/octet-stream", type: "application/octet-stream" },
];
const binary: Form = {
  ...structured,
  name: "binary CloudEvents",
  types: contents.map(({ type }) => type),
  params: binaryParams,
};

const secrets = [
  { name: "whsec_", create: createSymmetric, isSymmetric: true },
  { name: "whsk_", create: createAsymmetric, isSymmetric: false },
];

const running = useWorld(embeddedWorld);
let hooks = 0;

for (const language of languages) {
  describe.runIf(language.canRun)(language.name, () => {
    const receiver = useWebhookReceiver(language);
    const usable = secrets.filter(({ isSymmetric }) => isSymmetric || language.verifiesAsymmetric);

    describe.each(usable)("with a secret $name", ({ create }) => {
      it.each(forms)("a receiver verifies and reads $name", (form) => checkForm(form, receiver(), create()));
    });

    it("a receiver reads binary CloudEvents, which are not signed", () => checkForm(binary, receiver()));

    it("a receiver refuses a callback that another secret signed", async () => {
      const { client } = running();
      const hook = createHook();
      await receiver().verifyWith(createSymmetric().key);
      await client.open(hook.topic);
      const { secret } = createSymmetric();
      const id = await client.subscribe({ topic: hook.topic, url: receiver().urlOf(hook.path), secret });
      await client.publish(hook.topic, "{}");
      await receiver().waitFor("a request", () => receiver().requestsTo(hook.path).length > 0);
      const [request] = receiver().requestsTo(hook.path);
      expect(request).toMatchObject({ status: 401, error: expect.stringMatching("No matching signature") });
      await client.unSubscribe(id);
    });
  });
}

it("callbacks verify with the secret that the broker generated for a REST subscribe", async () => {
  const { broker, client } = running();
  const { topic } = createHook();
  await using hooked = await startReceiver();
  await client.open(topic);
  const parameters = new URLSearchParams({ topic, url: hooked.url, secret: "generate" });
  const answer = await fetch(`${broker.url}/rest/subscribe`, { method: "POST", body: parameters });
  const secret = answer.headers.get("stele-secret") ?? "";
  const id: unknown = await answer.json();
  expect([secret, id]).toEqual([expect.stringMatching(/^whsec_/), expect.stringMatching(/^[0-9a-f-]{36}$/)]);
  await client.publish(topic, "signed");
  await hooked.waitForCount(1);
  const [{ body, headers } = { body: "", headers: {} }] = hooked.attempts;
  expect(await verifyWebhook(body, headers, secret)).toMatchObject({ kind: "event", events: [{ topic }] });
});

/** Subscribes to three published events, checks the requests, and then sends a test event. Without `keys`, the broker signs nothing. */
async function checkForm(form: Form, receiver: WebhookReceiver, keys?: Keys): Promise<void> {
  const { client }: RunningWorld = running();
  await receiver.verifyWith(keys?.key ?? null);
  const { topic, path } = createHook();
  await client.open(topic);
  const published = await publishContents(topic);
  const place = { topic, url: receiver.urlOf(path), offset: "OFFSET_FIRST", ...(keys && { secret: keys.secret }) };
  const id = await client[form.subscribe]({ ...place, ...form.params });
  await receiver.waitFor("all requests", () => receiver.requestsTo(path).length >= form.sizes.length);
  const requests = receiver.requestsTo(path);
  expect(receiver.eventsOf(path)).toEqual(published);
  expect(requests.map(({ type }) => type)).toEqual(form.types);
  expect(requests.map(({ events }) => events.length)).toEqual(form.sizes);
  for (const request of requests) expect(request).toMatchObject({ kind: form.kind });
  expect(await createOrderSender(client, id)("test")).toMatchObject({ test: { outcome: "accepted" } });
  await receiver.waitFor("the test event", () => receiver.requestsTo(path).at(-1)?.kind === "ping");
}

async function publishContents(topic: string): Promise<readonly SeenEvent[]> {
  const published: SeenEvent[] = [];
  const colour = 'gr"ü n%';
  for (const { content, format } of contents) {
    const extensions = { "svc-format": format, "svc-colour": colour };
    const { eventId: id } = await running().client.publish(topic, content, extensions);
    published.push({ id, topic, content: content.toString("base64"), colour });
  }
  return published;
}

/** A new topic and a new path. */
function createHook(): { readonly topic: string; readonly path: string } {
  hooks += 1;
  return { topic: `webhooks/a 50% b/${hooks}`, path: `hook-${hooks}` };
}
