import { BrokerError } from "@stele/wire";
import { afterEach, beforeEach, expect, it } from "vitest";
import { withCalls } from "../../lib/with-calls.ts";
import type { Store } from "../../ports/store.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { SubscriptionOrder } from "../operate/calls.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine } from "../testing/test-engine.ts";

/** Two topics whose eventIds begin with the same digits, in the order in which they are opened. */
const [first, second] = ["topic/50622", "topic/83634"] as const;
const url = "http://down/";

let engine: TestEngine;
/** The topic whose events neither the store nor the chain gives when they are read next. */
let unread: string | undefined;
beforeEach(async () => {
  unread = undefined;
  const memory = createMemoryStore();
  const findBatch: Store["findBatch"] = async (groupId, place) => {
    if (place.topic !== unread) return memory.findBatch(groupId, place);
    unread = undefined;
    throw new BrokerError("storeUnreachable");
  };
  engine = await TestEngine.start({ store: withCalls(memory, { findBatch }) });
  for (const topic of [first, second, "a"]) await engine.broker.open({ topic, groupId: undefined });
  engine.sink.receive(url, () => ({ status: "failed", reason: "500" }));
});
afterEach(() => engine.stop());

/** Publishes events in one block, each the first of its topic. Returns the eventId that the first two topics share. */
async function publish(...topics: readonly string[]): Promise<string> {
  const ids = await Promise.all(topics.map((topic) => engine.publish(topic, topic)));
  const [shared, ...others] = topics.flatMap((topic, index) => (topic === "a" ? [] : [ids[index] ?? ""]));
  expect(others).toEqual([shared]);
  await engine.clock.advance(1_000);
  return shared ?? "";
}

async function order(id: string, one: SubscriptionOrder) {
  const work = engine.broker.operator.orderSubscription(testCaller, id, { order: one, isDryRun: false });
  work.catch(() => undefined);
  await engine.clock.advance(2_000);
  return work;
}

it.each([
  [second, [first, second, "a"]],
  [first, [second, first, "a"]],
  ["a", ["a", first, second]],
])(
  "skip to an eventId of two topics means the event that the subscription to %s gets, if it gets one",
  async (filter, topics) => {
    const id = await engine.subscribe(filter, { url });
    const to = await publish(...topics);
    expect(await order(id, { kind: "skip", to })).toEqual({ id, events: 1 });
    const attempts = engine.sink.attempts.length;
    await engine.clock.advance(600_000);
    expect(engine.sink.attempts).toHaveLength(attempts);
  },
);

it("skip to an eventId of two topics does not use the other topic's event if the read of the subscription's own topic fails", async () => {
  const id = await engine.subscribe(second, { url });
  const to = await publish(first, second);
  unread = second;
  await expect(order(id, { kind: "skip", to })).rejects.toEqual(new BrokerError("storeUnreachable"));
  expect(await order(id, { kind: "skip", to })).toEqual({ id, events: 1 });
});

it("delivers a dead letter's own event again, although another topic has its eventId", async () => {
  const id = await engine.subscribe(second, { url, options: { onFailure: "skip", attemptsMax: 1 } });
  const eventId = await publish(first, second);
  engine.sink.receive(url, () => ({ status: "accepted" }));
  expect(await order(id, { kind: "redeliver", eventId })).toMatchObject({ events: 1 });
  expect(engine.sink.attempts.map(({ event }) => event.topic)).toEqual([second, second]);
});

it.each([
  ["all dead letters", "first fails", first],
  ["all dead letters", "second fails", second],
  ["the dead letters of the eventId", "first fails", first],
  ["the dead letters of the eventId", "second fails", second],
])("redelivers %s if two of them have one eventId, although the %s again", async (which, _, failing) => {
  const id = await engine.subscribe("topic/+", { url, options: { onFailure: "skip", attemptsMax: 1 } });
  const eventId = await publish(first, second);
  engine.sink.attempts.length = 0;
  const failed = { status: "failed", reason: "400" } as const;
  engine.sink.receive(url, ({ event }) => (event.topic === failing ? failed : { status: "accepted" }));
  const one = { kind: "redeliver", eventId: which.startsWith("all") ? undefined : eventId } as const;
  expect(await order(id, one)).toMatchObject({ events: 1, deadLetters: { left: 1 } });
  expect(engine.sink.attempts.map(({ event }) => event.topic)).toEqual([first, second]);
  const left = await engine.broker.operator.listDeadLetters(testCaller, id, { after: undefined, limit: 9 });
  expect(left.items).toMatchObject([{ topic: failing, attempts: 2 }]);
});

it("getEvent finds the event of the topic that was opened first, even if the event of the other topic with this eventId cannot be read", async () => {
  const eventId = await publish(first, second);
  unread = second;
  expect(await engine.broker.getEvent({ eventId, groupId: undefined })).toMatchObject({ topic: first, eventId });
});
