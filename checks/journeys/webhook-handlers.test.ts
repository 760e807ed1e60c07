import { generateKeyPairSync } from "node:crypto";
import type { ReceivedEvent } from "@stele/client";
import { type Webhook, WebhookRefused } from "@stele/client/webhook";
import { describe, expect, it } from "vitest";
import { until } from "../harness/until.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";
import { frameworks } from "./webhooks/frameworks.ts";
import { createOrderSender } from "./webhooks/order-sender.ts";

const running = useWorld(embeddedWorld);
const [{ serve: serveNode }] = frameworks;
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const contents = ['{"n":1}', "grüße \u{1F642}\r\n", "3"];
let topics = 0;

/** Options for a handler, and what the handler passed to them. */
class Seen {
  readonly events: ReceivedEvent[] = [];
  readonly kinds = new Set<Webhook["kind"]>();
  readonly errors: unknown[] = [];
  readonly options = {
    secret: secret as string | readonly string[],
    onEvent: (event: ReceivedEvent, webhook: Webhook): void => {
      this.events.push(event);
      this.kinds.add(webhook.kind);
    },
    onError: (error: unknown): void => void this.errors.push(error),
  };

  texts(): readonly string[] {
    return this.events.map((event) => event.text());
  }
}

/** Creates a topic with three events. */
async function createTopic(): Promise<string> {
  topics += 1;
  const topic = `handlers/${topics}`;
  const { client } = running();
  await client.open(topic);
  for (const content of contents) await client.publish(topic, content);
  return topic;
}

describe.each(frameworks)("the handler for $name", ({ serve }) => {
  it.each([
    ["RESTful callbacks", "subscribe", {}, "event"],
    ["JsonRPC callbacks", "subscribeByRpc", {}, "event"],
    ["batches", "subscribe", { batch: 3, batchMs: 60_000 }, "batch"],
    ["JsonRPC batches", "subscribeByRpc", { batch: 3, batchMs: 60_000 }, "batch"],
  ] as const)("the handler receives %s from a broker", async (...[, call, params, kind]) => {
    const seen = new Seen();
    await using server = await serve(seen.options);
    const topic = await createTopic();
    const { client } = running();
    const id = await client[call]({ topic, url: server.url, secret, offset: "OFFSET_FIRST", ...params });
    await until("all events came", async () => seen.events.length >= contents.length);
    expect(seen.texts()).toEqual(contents);
    expect([...seen.kinds]).toEqual([kind]);
    // No event is pending: the broker counts all of them as accepted.
    await until("no event is pending", async () => (await client.findSubscription(id))?.notifyingEventCount === "0");
    expect(await createOrderSender(client, id)("test")).toMatchObject({ test: { outcome: "accepted" } });
    expect(seen.errors).toEqual([]);
    await client.unSubscribe(id);
  });

  it("the handler refuses a callback with a wrong signature, and a GET", async () => {
    const seen = new Seen();
    await using server = await serve(seen.options);
    const headers = {
      "content-type": "application/json",
      "webhook-id": "x",
      "webhook-timestamp": String(Math.floor(Date.now() / 1000)),
      "webhook-signature": "v1,AAAA",
    };
    const forged = await fetch(server.url, { method: "POST", headers, body: "{}" });
    expect({ status: forged.status, text: await forged.text() }).toEqual({
      status: 401,
      text: "webhook-signature does not match\n",
    });
    expect(seen.errors).toEqual([expect.any(WebhookRefused)]);
    const read = await fetch(server.url);
    expect([404, 405]).toContain(read.status);
    expect(seen.events).toEqual([]);
  });

  it("the handler answers 413 to a body that is too long, and still answers the next request", async () => {
    const seen = new Seen();
    await using server = await serve(seen.options);
    const headers = { "content-type": "application/json" };
    const body = Buffer.alloc(17 * 1024 * 1024, " ");
    expect((await fetch(server.url, { method: "POST", headers, body })).status).toBe(413);
    expect((await fetch(server.url, { method: "POST", headers, body: "{}" })).status).toBe(401);
  });
});

it.each(frameworks.flatMap(({ name, serveParsed }) => (serveParsed === undefined ? [] : [{ name, serveParsed }])))(
  "the handler for $name answers 500 if the program parsed the body before",
  async ({ serveParsed }) => {
    const seen = new Seen();
    await using server = await serveParsed(seen.options);
    const headers = { "content-type": "application/json" };
    const answer = await fetch(server.url, { method: "POST", headers, body: "{}" });
    expect(answer.status).toBe(500);
    expect(await answer.text()).toMatch(/^the body was (parsed|read) already: /);
    expect(String(seen.errors[0])).toContain("already");
  },
);

it.each(frameworks.filter(({ otherPath }) => otherPath !== undefined))(
  "the handler for $name leaves the program's other routes as they were",
  async ({ serve, otherPath = "" }) => {
    await using server = await serve(new Seen().options);
    const headers = { "content-type": "application/json" };
    const answer = await fetch(new URL(otherPath, server.url), { method: "POST", headers, body: '{"a":1}' });
    expect(await answer.json()).toEqual({ got: { a: 1 } });
  },
);

it("a handler verifies Ed25519 signatures with the public key of the subscription's secret", async () => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const [seed, raw] = [
    privateKey.export({ format: "der", type: "pkcs8" }),
    publicKey.export({ format: "der", type: "spki" }),
  ];
  const seen = new Seen();
  seen.options.secret = `whpk_${raw.subarray(-32).toString("base64")}`;
  await using server = await serveNode(seen.options);
  const topic = await createTopic();
  const { client } = running();
  const whsk = `whsk_${seed.subarray(-32).toString("base64")}`;
  const id = await client.subscribe({ topic, url: server.url, secret: whsk, offset: "OFFSET_FIRST" });
  await until("all events came", async () => seen.events.length >= contents.length);
  expect(seen.texts()).toEqual(contents);
  await client.unSubscribe(id);
});
