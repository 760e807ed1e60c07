import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createDeferred } from "../../lib/deferred.ts";
import type { AttemptOutcome } from "../../ports/sink.ts";
import { testCaller } from "../testing/as-caller.ts";
import { publish } from "../testing/publish.ts";
import { TestEngine } from "../testing/test-engine.ts";

let engine: TestEngine;
beforeEach(async () => {
  engine = await TestEngine.start();
  for (const topic of ["a", "b", "c"]) await engine.broker.open({ topic, groupId: undefined });
});
afterEach(() => engine.stop());

const url = "http://receiver/";
const latencyMs = 20;

/** Makes the receiver accept after {@link latencyMs}. */
function receiveSlowly(): void {
  engine.sink.receive(url, async () => {
    await new Promise<void>((resolve) => void engine.clock.after(latencyMs, resolve));
    return { status: "accepted" };
  });
}

const sizes = () => engine.sink.attempts.map(({ batch }) => batch?.map(({ event }) => event.sequence));
const acceptedCountOf = async (id: string) =>
  (await engine.broker.operator.getSubscription(testCaller, id)).subscription.notifiedCount;

describe("concurrency", () => {
  it("delivers three topics in the time of one", async () => {
    receiveSlowly();
    await engine.subscribe("#", { options: { concurrency: 3 } });
    for (const topic of ["a", "b", "c"]) await engine.publishMany(topic, 4);
    await engine.clock.advance(4 * latencyMs);
    expect(engine.sink.attempts).toHaveLength(12);
  });

  it("a topic whose events fail does not delay other topics, but holds the cursor", async () => {
    engine.sink.receive(url, ({ event }) =>
      event.topic === "a" ? { status: "failed", reason: "500" } : { status: "accepted" },
    );
    const id = await engine.subscribe("#", { options: { concurrency: 2 } });
    for (const topic of ["b", "a", "c", "b"]) await engine.publish(topic, "1");
    await engine.clock.advance(10);
    const seen = engine.sink.attempts.map(({ event }) => `${event.topic}${event.sequence}`);
    expect(seen).toEqual(["b1", "a1", "c1", "b2"]);
    expect(await acceptedCountOf(id)).toBe(1);
    const { subscription } = await engine.broker.operator.getSubscription(testCaller, id);
    expect(subscription.failedAttempts).toBe(1);
  });

  it("subscribing again does not repeat events of other topics that were accepted beyond the cursor", async () => {
    engine.sink.receive(url, ({ event }) =>
      event.topic === "a" ? { status: "failed", reason: "500" } : { status: "accepted" },
    );
    const subscriptionId = await engine.subscribe("#", { options: { concurrency: 2 } });
    for (const topic of ["a", "b", "b"]) await engine.publish(topic, "1");
    await engine.clock.settle();
    await engine.subscribe("#", { subscriptionId });
    await engine.publish("b", "1");
    await engine.clock.settle();
    const seen = engine.sink.attempts.map(({ event }) => `${event.topic}${event.sequence}`);
    expect(seen).toEqual(["a1", "b1", "b2", "a1", "b3"]);
  });

  it("a wait that the receiver asks for delays every topic", async () => {
    let isBusy = true;
    engine.sink.receive(url, ({ event }) =>
      event.topic === "a" && isBusy
        ? { status: "failed", reason: "429", retryAfterMs: 60_000 }
        : { status: "accepted" },
    );
    await engine.subscribe("#", { options: { concurrency: 2 } });
    await engine.publish("a", "1");
    await engine.clock.settle();
    await engine.publish("b", "1");
    await engine.clock.advance(59_000);
    expect(engine.sink.attempts).toHaveLength(1);
    isBusy = false;
    await engine.clock.advance(2_000);
    expect(engine.sink.attempts.map(({ event }) => event.topic).toSorted()).toEqual(["a", "a", "b"]);
  });

  it("a wait that the receiver asks for is stored at once, even if it is not the oldest event that got the answer", async () => {
    const { promise: ofA, resolve: answerA } = createDeferred<AttemptOutcome>();
    engine.sink.receive(url, async ({ event }) =>
      event.topic === "a" ? ofA : { status: "failed", reason: "429", retryAfterMs: 60_000 },
    );
    await engine.subscribe("#", { options: { concurrency: 2 } });
    for (const topic of ["a", "b"]) await engine.publish(topic, "1");
    await engine.clock.settle();
    const retryAt = engine.clock.now() + 60_000;
    await engine.clock.advance(1_000);
    expect(await engine.store.listSubscriptions()).toMatchObject([{ failedAttempts: 0, retryAt }]);
    answerA({ status: "accepted" });
  });

  it("a wait that the receiver asks for delays a topic that already waits for a shorter time", async () => {
    engine.sink.receive(url, ({ event }) => ({
      status: "failed",
      reason: "429",
      ...(event.topic === "b" && { retryAfterMs: 60_000 }),
    }));
    await expectOneAttemptEach(59_000);
    await engine.clock.advance(1_000);
    expect(topicsSeen()).toEqual(["a", "a", "b", "b"]);
  });

  it("a wait that the receiver asks for does not end earlier because another topic got a shorter one", async () => {
    engine.sink.receive(url, async ({ event }) => {
      const isFirst = event.topic === "a";
      await new Promise<void>((resolve) => void engine.clock.after(isFirst ? 1 : latencyMs, resolve));
      return { status: "failed", reason: "429", retryAfterMs: isFirst ? 60_000 : 2_000 };
    });
    await expectOneAttemptEach(59_000);
    await engine.clock.advance(2_000);
    expect(topicsSeen()).toEqual(["a", "a", "b", "b"]);
  });

  it("stores the time of a retry in whole milliseconds if another topic's answer caused the wait", async () => {
    const written: number[] = [];
    const saveProgress = engine.store.saveProgress.bind(engine.store);
    engine.store.saveProgress = (rows) => {
      written.push(...rows.flatMap(({ failedMs, retryAt }) => [failedMs, retryAt]));
      return saveProgress(rows);
    };
    const now = engine.clock.now.bind(engine.clock);
    engine.clock.now = () => Math.floor(now());
    engine.sink.receive(url, () => {
      const isFirst = engine.sink.attempts.length === 1;
      return { status: "failed", reason: "429", ...(isFirst && { retryAfterMs: 60_000 }) };
    });
    await engine.subscribe("#", { options: { concurrency: 2, onFailure: "skip", attemptsMax: 2 } });
    await engine.publish("a", "1");
    await engine.clock.advance(0.25);
    await engine.publish("b", "1");
    await engine.clock.advance(120_000);
    expect(written.filter((ms) => ms > 0)).not.toEqual([]);
    expect(written.filter((ms) => !Number.isInteger(ms))).toEqual([]);
  });

  it("a wait that the receiver asks for ends in time even if the clock is set back meanwhile", async () => {
    engine.sink.receive(url, ({ event }) =>
      event.topic === "a" ? { status: "failed", reason: "429", retryAfterMs: 60_000 } : { status: "accepted" },
    );
    await engine.subscribe("#", { options: { concurrency: 2 } });
    await engine.publish("a", "1");
    await engine.clock.settle();
    engine.clock.step(-365 * 24 * 3_600_000);
    await engine.publish("b", "1");
    await engine.clock.advance(61_000);
    expect(engine.sink.attempts.map(({ event }) => event.topic).toSorted()).toEqual(["a", "a", "b"]);
  });

  it("a receiver that answers gone suspends the subscription once the other attempts have ended", async () => {
    receiveSlowly();
    engine.sink.receive(url, async ({ event }) => {
      await new Promise<void>((resolve) => void engine.clock.after(event.topic === "a" ? 5 : latencyMs, resolve));
      return event.topic === "a" ? { status: "gone", reason: "410" } : { status: "accepted" };
    });
    const id = await engine.subscribe("#", { options: { concurrency: 2 } });
    await engine.publish("b", "1");
    await engine.publish("a", "1");
    await engine.clock.advance(10);
    const find = async () => (await engine.broker.operator.getSubscription(testCaller, id)).subscription;
    expect((await find()).state).toBe("active");
    await engine.clock.advance(latencyMs);
    expect(await find()).toMatchObject({ state: "suspended", notifiedCount: 1 });
  });
});

describe("batches", () => {
  it("events that arrive during a request go with the next one, up to batchEvents", async () => {
    receiveSlowly();
    await engine.subscribe("a", { options: { batchEvents: 3 } });
    await engine.publishMany("a", 6);
    await engine.clock.advance(4 * latencyMs);
    expect(sizes()).toEqual([[1], [2, 3, 4], [5, 6]]);
  });

  it("a batch waits up to batchMs for more events, and is sent at once when it is full", async () => {
    await engine.subscribe("a", { options: { batchEvents: 3, batchMs: 100 } });
    await engine.publishMany("a", 2);
    await engine.clock.advance(99);
    expect(sizes()).toEqual([]);
    await engine.clock.advance(1);
    await engine.publishMany("a", 3);
    await engine.clock.settle();
    expect(sizes()).toEqual([
      [1, 2],
      [3, 4, 5],
    ]);
  });

  it.each([
    ["a topic of large events", { events: 60, topics: ["a"], bytes: 60_000 }],
    ["many small events of several topics", { events: 2_100, topics: ["a", "b", "c"], bytes: 1 }],
  ])(
    "the worker sends a batch before batchMs has passed if it has no room for more events: %s",
    async (_, { events, topics, bytes }) => {
      const options = { concurrency: 3, batchEvents: 1_000, batchMs: 60_000 };
      const id = await engine.subscribe("#", { options });
      const content = new Uint8Array(bytes);
      const eventOf = (index: number) => ({
        topic: topics[index % topics.length] ?? "",
        groupId: undefined,
        content,
        extensions: [],
      });
      await Promise.all(Array.from({ length: events }, (_unused, index) => publish(engine.broker, eventOf(index))));
      await engine.clock.advance(60_000);
      expect(await acceptedCountOf(id)).toBe(events);
      expect(engine.sink.attempts.length).toBeLessThan(12);
    },
  );

  it("a batch has at most 1 MiB, extensions included", async () => {
    receiveSlowly();
    await engine.subscribe("a", { options: { batchEvents: 1_000 } });
    const extensions = [["svc-x", "x".repeat(4_000)]] as const;
    const event = { topic: "a", groupId: undefined, content: new Uint8Array(1), extensions };
    await Promise.all(Array.from({ length: 600 }, () => publish(engine.broker, event)));
    await engine.clock.advance(10 * latencyMs);
    const counts = engine.sink.attempts.map(({ batch = [] }) => batch.length);
    expect(counts.reduce((sum, count) => sum + count)).toBe(600);
    expect(Math.max(...counts)).toBeLessThan(1024 ** 2 / 4_000);
    expect(Math.max(...counts)).toBeGreaterThan(200);
  });

  it("a failed batch is repeated whole, and no part of it is acknowledged", async () => {
    let isDown = true;
    receiveSlowly();
    const id = await engine.subscribe("a", { options: { batchEvents: 9, batchMs: 10 } });
    engine.sink.receive(url, () => (isDown ? { status: "failed", reason: "500" } : { status: "accepted" }));
    await engine.publishMany("a", 3);
    await engine.clock.advance(10);
    expect(await acceptedCountOf(id)).toBe(0);
    isDown = false;
    await engine.clock.advance(5_000);
    expect(sizes()).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ]);
    expect(await acceptedCountOf(id)).toBe(3);
  });
});

it("an operator turns concurrency and batches on and off without losing an event", async () => {
  receiveSlowly();
  const id = await engine.subscribe("#");
  const change = async (options: object): Promise<void> => {
    const order = { order: { kind: "change", change: options }, isDryRun: false } as const;
    const changing = engine.broker.operator.orderSubscription(testCaller, id, order);
    await engine.clock.advance(1_000);
    await changing;
  };
  await engine.publishMany("a", 3);
  await change({ concurrency: 2, batchEvents: 2 });
  await engine.publishMany("b", 3);
  await change({ concurrency: 1, batchEvents: 0 });
  await engine.publishMany("a", 1);
  await engine.clock.advance(1_000);
  expect(await acceptedCountOf(id)).toBe(7);
});

function topicsSeen(): readonly string[] {
  return engine.sink.attempts.map(({ event }) => event.topic).toSorted();
}

/** Publishes an event to each of two topics, and expects one attempt at each within `ms`. */
async function expectOneAttemptEach(ms: number): Promise<void> {
  await engine.subscribe("#", { options: { concurrency: 2 } });
  await engine.publish("a", "1");
  await engine.publish("b", "1");
  await engine.clock.advance(ms);
  expect(topicsSeen()).toEqual(["a", "b"]);
}
