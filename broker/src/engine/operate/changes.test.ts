import { errorCatalogue, type ErrorName } from "@stele/wire";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readSecrets } from "../../domain/signing-secret.ts";
import { isCallback } from "../../domain/subscription.ts";
import { testCaller } from "../testing/as-caller.ts";
import { secretNamed } from "../testing/secret-named.ts";
import { TestEngine } from "../testing/test-engine.ts";
import type { DeliveryChange, SubscriptionOrder } from "./calls.ts";

let engine: TestEngine;
beforeEach(async () => {
  engine = await TestEngine.start({ limits: { subscriptionsPerReceiverMax: 2 } });
  for (const topic of ["a", "b"]) await engine.broker.open({ topic, groupId: undefined });
});
afterEach(() => engine.stop());

const refusal = (name: ErrorName): unknown => expect.objectContaining({ code: errorCatalogue[name].code });
const page = { after: undefined, limit: 50 };

/** Lets the work end: an order stops the worker, whose attempt in progress may take a second of virtual time. */
async function settle<Result>(work: Promise<Result>): Promise<Result> {
  work.catch(() => undefined);
  await engine.clock.settle();
  await engine.clock.advance(1_000);
  return work;
}

const order = (id: string, one: SubscriptionOrder, isDryRun = false) =>
  settle(engine.broker.operator.orderSubscription(testCaller, id, { order: one, isDryRun }));
const change = (id: string, one: DeliveryChange, isDryRun = false) =>
  order(id, { kind: "change", change: one }, isDryRun);

async function deliveryOf(id: string) {
  const { subscription } = await engine.broker.operator.getSubscription(testCaller, id);
  if (!isCallback(subscription)) throw new Error("not a callback subscription");
  return subscription.delivery;
}

describe("a change", () => {
  it("of the url delivers the waiting events to the new url, without the old url's secret", async () => {
    const { sink, clock } = engine;
    sink.receive("http://down/", () => ({ status: "failed", reason: "500" }));
    const id = await engine.subscribe("a", { url: "http://down/", secret: secretNamed("s") });
    await engine.publishMany("a", 2);
    await clock.settle();
    expect(await change(id, { url: "http://up/" }, true)).toEqual({ id, events: 2 });
    expect((await deliveryOf(id)).url).toBe("http://down/");
    expect(await change(id, { url: "http://up/" })).toEqual({ id, events: 2 });
    await clock.settle();
    const there = sink.attempts.filter(({ subscription }) => subscription.url === "http://up/");
    expect(there.map(({ event }) => event.sequence)).toEqual([1, 2]);
    expect(there.map(({ subscription }) => subscription.secret)).toEqual([undefined, undefined]);
    await change(id, { url: "http://third/", secret: secretNamed("t") });
    expect(await deliveryOf(id)).toMatchObject({ url: "http://third/", secret: secretNamed("t") });
  });

  it("of the secret keeps the previous secret for the rotation time, even when the owner subscribes again", async () => {
    const id = await engine.subscribe("a", { secret: secretNamed("old") });
    const until = engine.clock.now() + 60_000;
    await change(id, { secret: secretNamed("new"), rotationMs: 60_000 });
    const { secret = "" } = await deliveryOf(id);
    expect(readSecrets(secret)).toEqual({ current: secretNamed("new"), older: { secret: secretNamed("old"), until } });
    await engine.subscribe("a", { subscriptionId: id, secret: secretNamed("new") });
    await engine.subscribe("a", { subscriptionId: id });
    expect(await deliveryOf(id)).toMatchObject({ secret });
    await change(id, { secret: secretNamed("new") });
    expect(await deliveryOf(id)).toMatchObject({ secret });
    await change(id, { secret: secretNamed("new"), rotationMs: 0 });
    expect(await deliveryOf(id)).toMatchObject({ secret: secretNamed("new") });
    await change(id, { secret: null });
    expect((await deliveryOf(id)).secret).toBeUndefined();
  });

  it("to the current secret moves the end of a rotation in progress, but not of one that has ended", async () => {
    const id = await engine.subscribe("a", { secret: secretNamed("old") });
    await change(id, { secret: secretNamed("new") });
    const until = engine.clock.now() + 60_000;
    await change(id, { secret: secretNamed("new"), rotationMs: 60_000 });
    const secrets = { current: secretNamed("new"), older: { secret: secretNamed("old"), until } };
    expect(readSecrets((await deliveryOf(id)).secret ?? "")).toEqual(secrets);
    await engine.clock.advance(60_000);
    await change(id, { secret: secretNamed("new"), rotationMs: 60_000 });
    expect(readSecrets((await deliveryOf(id)).secret ?? "")).toEqual(secrets);
  });

  it("to the secret `generate` answers with a new secret, and is refused for a search", async () => {
    const id = await engine.subscribe("a");
    expect(await change(id, { secret: "generate" }, true)).toEqual({ id, events: 0 });
    expect((await deliveryOf(id)).secret).toBeUndefined();
    const { secret = "" } = await change(id, { secret: "generate" });
    expect(Buffer.from(secret.replace(/^whsec_/, ""), "base64")).toHaveLength(32);
    expect(await deliveryOf(id)).toMatchObject({ secret });
    const all = { order: { kind: "change", change: { secret: "generate" } }, isDryRun: false, ...page } as const;
    const many = settle(engine.broker.operator.orderSubscriptions(testCaller, {}, all));
    await expect(many).rejects.toEqual(refusal("parameterInvalid"));
    expect(await deliveryOf(id)).toMatchObject({ secret });
  });

  it("of topic and kind takes effect after the cursor", async () => {
    const { sink, clock } = engine;
    const id = await engine.subscribe("a");
    await engine.publish("a", "1");
    await clock.settle();
    expect(await change(id, { topic: "+", kind: "JsonRPC" })).toEqual({ id, events: 0, unmatched: 0 });
    await engine.publish("b", "1");
    await engine.publish("a", "2");
    await clock.settle();
    const seen = sink.attempts.map(({ event, subscription }) => [event.topic, event.sequence, subscription.format]);
    expect(seen).toEqual([
      ["a", 1, "RESTful"],
      ["b", 1, "JsonRPC"],
      ["a", 2, "JsonRPC"],
    ]);
  });

  it("of the topic answers how many waiting events the new topic leaves out, also as a dry run", async () => {
    const { sink, clock } = engine;
    const id = await engine.subscribe("+");
    await order(id, { kind: "pause" });
    await engine.publishMany("a", 3);
    await engine.publishMany("b", 2);
    expect(await change(id, { topic: "a" }, true)).toEqual({ id, events: 3, unmatched: 2 });
    expect(await change(id, { topic: "#" }, true)).toEqual({ id, events: 5, unmatched: 0 });
    expect(await change(id, { topic: "+/#" }, true)).toEqual({ id, events: 5, unmatched: 0 });
    expect(await change(id, { topic: "+/a" }, true)).toEqual({ id, events: 0, unmatched: 5 });
    expect(await change(id, { topic: "b" })).toEqual({ id, events: 2, unmatched: 3 });
    expect(await change(id, { topic: "a" }, true)).toEqual({ id, events: 3, unmatched: 2 });
    const search = { order: { kind: "change", change: { topic: "a" } }, isDryRun: false, ...page } as const;
    const all = settle(engine.broker.operator.orderSubscriptions(testCaller, { topic: "b" }, search));
    expect((await all).items).toEqual([{ id, events: 3, unmatched: 2 }]);
    await order(id, { kind: "resume" });
    await clock.settle();
    expect(sink.attempts.map(({ event }) => event.topic)).toEqual(["a", "a", "a"]);
  });

  it("accepts a topic name that looks like a shared filter", async () => {
    const topic = "$share/workers/a";
    await engine.broker.open({ topic, groupId: undefined });
    const id = await engine.subscribe("a");
    await change(id, { topic });
    await engine.publish(topic, "1");
    await engine.clock.settle();
    expect(engine.sink.attempts.map(({ event }) => event.topic)).toEqual([topic]);
  });

  it.each<[string, DeliveryChange, ErrorName]>([
    ["an ftp url", { url: "ftp://x" }, "urlInvalid"],
    ["a topic that does not exist", { topic: "none" }, "topicNotExist"],
    ["an invalid pattern", { topic: "a#" }, "topicPatternInvalid"],
    ["a shared filter", { topic: "$share/workers/#" }, "topicPatternInvalid"],
    ["a topic that does not exist and looks like a shared filter", { topic: "$share/workers/b" }, "topicNotExist"],
    ["a blank secret", { secret: " " }, "parameterInvalid"],
    ["a plain secret", { secret: "plain" }, "parameterInvalid"],
  ])("to %s is refused, also as a dry run, and delivery continues", async (_, one, name) => {
    const id = await engine.subscribe("a");
    await expect(change(id, one, true)).rejects.toEqual(refusal(name));
    await expect(change(id, one)).rejects.toEqual(refusal(name));
    await engine.publishMany("a", 1);
    await engine.clock.settle();
    expect(engine.sink.sequencesOf(id)).toEqual([1]);
  });

  it("to a receiver that already has the most subscriptions allowed is refused", async () => {
    for (let made = 0; made < 2; made += 1) await engine.subscribe("a", { url: "http://full/" });
    const id = await engine.subscribe("a");
    await expect(change(id, { url: "http://full/again" })).rejects.toEqual(refusal("overQuota"));
  });

  it("applies to every subscription that a search finds, and does not resume a paused one", async () => {
    const ids = [
      await engine.subscribe("a", { url: "http://one/" }),
      await engine.subscribe("b", { url: "http://one/2" }),
    ];
    await order(ids[0] ?? "", { kind: "pause" });
    const call = { order: { kind: "change", change: { url: "http://two/" } }, isDryRun: false, ...page } as const;
    await settle(engine.broker.operator.orderSubscriptions(testCaller, { host: "one" }, call));
    for (const id of ids) expect((await deliveryOf(id)).url).toBe("http://two/");
    await engine.publishMany("a", 1);
    await engine.publishMany("b", 1);
    await engine.clock.settle();
    expect(ids.map((id) => engine.sink.sequencesOf(id))).toEqual([[], [1]]);
  });
});

describe("a test event", () => {
  it("is sent for a paused subscription, and the result says how the receiver answered", async () => {
    const { sink } = engine;
    const id = await engine.subscribe("a", { secret: secretNamed("s") });
    await order(id, { kind: "pause" });
    expect(await order(id, { kind: "test" }, true)).toEqual({ id, events: 0 });
    expect(sink.tested).toEqual([]);
    sink.testOutcome = { status: "failed", reason: "answered 500" };
    expect(await order(id, { kind: "test" })).toMatchObject({ test: { outcome: "failed", reason: "answered 500" } });
    expect(sink.tested).toMatchObject([{ id, url: "http://receiver/", secret: secretNamed("s") }]);
    expect(sink.attempts).toEqual([]);
  });

  it("fails when the receiver does not answer within 30 s", async () => {
    const id = await engine.subscribe("a");
    engine.sink.isTestHanging = true;
    const work = engine.broker.operator.orderSubscription(testCaller, id, { order: { kind: "test" }, isDryRun: false });
    await engine.clock.advance(30_000);
    expect(await work).toMatchObject({ test: { outcome: "failed", reason: "it took longer than 30 s" } });
  });
});
