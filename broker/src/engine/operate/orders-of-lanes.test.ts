import { afterEach, beforeEach, expect, it } from "vitest";
import { createDeferred } from "../../lib/deferred.ts";
import type { AttemptOutcome } from "../../ports/sink.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine } from "../testing/test-engine.ts";
import type { SubscriptionOrder } from "./calls.ts";

const url = "http://receiver/";

let engine: TestEngine;
/** The receiver's answer to events of the topic `bad`. */
let bad: AttemptOutcome;
beforeEach(async () => {
  engine = await TestEngine.start();
  bad = { status: "failed", reason: "500" };
  engine.sink.receive(url, ({ event }) => (event.topic === "bad" ? bad : { status: "accepted" }));
  for (const topic of ["bad", "good"]) await engine.broker.open({ topic, groupId: undefined });
});
afterEach(() => engine.stop());

const find = (id: string) => engine.broker.operator.getSubscription(testCaller, id);
const seen = (topic: string) =>
  engine.sink.attempts.flatMap(({ event }) => (event.topic === topic ? [event.sequence] : []));

/** Gives an order. It stops the worker, whose attempt in progress may take a second of virtual time. */
async function give(id: string, order: SubscriptionOrder): Promise<number> {
  const work = engine.broker.operator.orderSubscription(testCaller, id, { order, isDryRun: false });
  await engine.clock.settle();
  await engine.clock.advance(1_000);
  return (await work).events;
}

/** Creates a subscription that fails at the first event of `bad` and has delivered three later ones of `good`. */
async function start(concurrency = 8): Promise<string> {
  const id = await engine.subscribe("+", { url, options: { concurrency } });
  await engine.publishMany("bad", 2);
  await engine.publishMany("good", 3);
  await engine.clock.settle();
  expect([seen("bad"), seen("good")]).toEqual([[1], [1, 2, 3]]);
  return id;
}

it("retry attempts the failed event at once, and repeats no delivered event of another topic", async () => {
  const id = await start();
  await engine.clock.advance(600_000);
  const attempts = seen("bad").length;
  expect(await give(id, { kind: "retry" })).toBe(5);
  expect(seen("bad")).toHaveLength(attempts + 1);
  bad = { status: "accepted" };
  await give(id, { kind: "retry" });
  expect(seen("bad").slice(-2)).toEqual([1, 2]);
  expect(seen("good")).toEqual([1, 2, 3]);
  expect(await find(id)).toMatchObject({ lag: 0, subscription: { notifiedCount: 5 } });
});

it("retry ends a wait that the receiver asked for, in all topics", async () => {
  const id = await engine.subscribe("+", { url, options: { concurrency: 2 } });
  bad = { status: "failed", reason: "503", retryAfterMs: 600_000 };
  await engine.publish("bad", "1");
  await engine.clock.settle();
  await engine.publish("good", "1");
  await engine.clock.advance(10_000);
  expect([seen("bad"), seen("good")]).toEqual([[1], []]);
  bad = { status: "failed", reason: "500" };
  await give(id, { kind: "retry" });
  expect([seen("bad"), seen("good")]).toEqual([[1, 1], [1]]);
  const stored = await engine.store.findSubscription((await find(id)).subscription.id);
  expect(stored).toMatchObject({ retryAt: 0, failingSince: (await find(id)).subscription.failingSince });
});

it("retry also ends a stored wait that the answer to a later event asked for", async () => {
  const id = await engine.subscribe("+", { url, options: { concurrency: 2 } });
  const { promise, resolve: answer } = createDeferred<AttemptOutcome>();
  engine.sink.receive(url, ({ event }) => (event.topic === "bad" ? bad : promise));
  await engine.publish("bad", "1");
  await engine.publish("good", "1");
  await engine.clock.advance(1_000);
  const retryAt = engine.clock.now() + 3_600_000;
  answer({ status: "failed", reason: "429", retryAfterMs: 3_600_000 });
  await engine.clock.advance(1_000);
  const { subscription } = await find(id);
  expect(await engine.store.findSubscription(subscription.id)).toMatchObject({ retryAt });
  engine.sink.receive(url, ({ event }) => (event.topic === "bad" ? bad : { status: "accepted" }));
  await give(id, { kind: "retry" });
  expect(await engine.store.findSubscription(subscription.id)).toMatchObject({ retryAt: 0 });
});

it.each<[string, SubscriptionOrder]>([
  ["a change", { kind: "change", change: { concurrency: 4 } }],
  ["a change to concurrency 1", { kind: "change", change: { concurrency: 1 } }],
  ["skip", { kind: "skip", to: undefined }],
  ["resume of an active subscription", { kind: "resume" }],
])("%s repeats no delivered event of another topic", async (_, order) => {
  const id = await start();
  bad = { status: "accepted" };
  await give(id, order);
  await engine.publishMany("good", 1);
  await engine.clock.settle();
  expect(seen("bad").slice(-1)).toEqual([2]);
  expect(seen("good")).toEqual([1, 2, 3, 4]);
  const accepted = order.kind === "skip" ? 5 : 6;
  expect(await find(id)).toMatchObject({ lag: 0, subscription: { notifiedCount: accepted } });
});

it("a change of the topic delivers events that only the new topic matches, and no accepted event again", async () => {
  const id = await engine.subscribe("+", { url, options: { concurrency: 2 } });
  await engine.broker.open({ topic: "more/good", groupId: undefined });
  await engine.publish("bad", "1");
  await engine.publish("good", "1");
  await engine.publish("more/good", "1");
  await engine.clock.settle();
  bad = { status: "accepted" };
  await give(id, { kind: "change", change: { topic: "#" } });
  expect([seen("good"), seen("more/good")]).toEqual([[1], [1]]);
});

it("replay also repeats events that were delivered beyond the cursor", async () => {
  const id = await start();
  bad = { status: "accepted" };
  expect(await give(id, { kind: "replay", from: "OFFSET_FIRST" })).toBe(0);
  expect(seen("good")).toEqual([1, 2, 3, 1, 2, 3]);
});

it("subscribing again twice repeats no delivered event, even if the worker in between has read no event", async () => {
  const id = await start();
  const { store } = engine;
  const readBatches = store.readBatches.bind(store);
  const mayRead = createDeferred<void>();
  store.readBatches = (...query) => mayRead.promise.then(() => readBatches(...query));
  bad = { status: "accepted" };
  await engine.subscribe("+", { url, subscriptionId: id, options: { concurrency: 4 } });
  const again = engine.subscribe("+", { url, subscriptionId: id, options: { concurrency: 2 } });
  await engine.clock.settle();
  mayRead.resolve();
  await again;
  await engine.clock.settle();
  expect(seen("bad").slice(-2)).toEqual([1, 2]);
  expect(seen("good")).toEqual([1, 2, 3]);
});
