import { errorCatalogue, type ErrorName } from "@stele/wire";
import { afterEach, describe, expect, it } from "vitest";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { type LogFields, type Logger, silentLogger } from "../../lib/logger.ts";
import { noMetrics } from "../../ports/metrics.ts";
import type { AttemptOutcome } from "../../ports/sink.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { testCaller } from "../testing/as-caller.ts";
import { secretNamed } from "../testing/secret-named.ts";
import { TestEngine, type TestEngineOptions } from "../testing/test-engine.ts";
import { withCalls } from "../../lib/with-calls.ts";
import type { SubscriptionOrder } from "./calls.ts";

let engine: TestEngine;
let outcomes: Map<string, AttemptOutcome>;
afterEach(() => engine.stop());

const failed: AttemptOutcome = { status: "failed", reason: "answered 500" };
const page = { after: undefined, limit: 50 };
const refusal = (name: ErrorName): unknown => expect.objectContaining({ code: errorCatalogue[name].code });
const textOf = (content: Uint8Array): string => new TextDecoder().decode(content);
const attempted = () => engine.sink.attempts.map(({ event }) => textOf(event.content));
const letters = async (id: string) => (await engine.broker.operator.listDeadLetters(testCaller, id, page)).items;

/** Creates a subscription with dead letters for the events 1, 2 and 3, then clears the recorded attempts. */
async function withLetters(options: TestEngineOptions = {}): Promise<string> {
  engine = await TestEngine.start(options);
  await engine.broker.open({ topic: "a", groupId: undefined });
  outcomes = new Map(["1", "2", "3"].map((text) => [text, failed]));
  engine.sink.receive("http://receiver/", ({ event }) => outcomes.get(textOf(event.content)) ?? { status: "accepted" });
  const id = await engine.subscribe("a", { options: { onFailure: "skip", attemptsMax: 1 } });
  for (const text of ["1", "2", "3"]) await engine.publish("a", text);
  await engine.clock.advance(1_000);
  engine.sink.attempts.length = 0;
  return id;
}

async function order(id: string, one: SubscriptionOrder, isDryRun = false) {
  const work = engine.broker.operator.orderSubscription(testCaller, id, { order: one, isDryRun });
  work.catch(() => undefined);
  await engine.clock.advance(2_000);
  return work;
}

const redeliver = { kind: "redeliver", eventId: undefined } as const;
const discard = { kind: "discard", eventId: undefined } as const;

describe("redeliver", () => {
  it("delivers all dead letters in order, and removes them", async () => {
    const changes: unknown[] = [];
    const id = await withLetters({ metrics: { ...noMetrics, deadLetters: (...change) => void changes.push(change) } });
    outcomes.clear();
    expect(await order(id, redeliver, true)).toEqual({ id, events: 3 });
    expect(attempted()).toEqual([]);
    expect(await order(id, redeliver)).toEqual({ id, events: 3, deadLetters: { left: 0 } });
    expect([attempted(), await letters(id)]).toEqual([["1", "2", "3"], []]);
    expect(changes.slice(3)).toEqual([1, 2, 3].map(() => ["delivered", 1]));
  });

  it("when it delivers many dead letters at once, logs 20 of them and counts the others in the next line", async () => {
    const lines: LogFields[] = [];
    const info: Logger["info"] = (message, fields = {}) => {
      if (message === "dead letter delivered") lines.push(fields);
    };
    const logger: Logger = { ...silentLogger, info, child: () => logger };
    const id = await withLetters({ logger });
    outcomes = new Map([["bad", failed]]);
    for (let count = 3; count < 100; count += 1) await engine.publish("a", "bad");
    await engine.clock.advance(1_000);
    outcomes.clear();
    expect(await order(id, redeliver)).toMatchObject({ events: 100 });
    expect(lines).toHaveLength(20);
    outcomes = new Map([["bad", failed]]);
    await engine.publish("a", "bad");
    await engine.clock.advance(1_000);
    outcomes.clear();
    expect(await order(id, redeliver)).toMatchObject({ events: 1 });
    expect(lines.at(-1)).toMatchObject({ subscriptionId: id, omitted: 80 });
  });

  it("delivers the dead letter of one event, and refuses an event that has none", async () => {
    const id = await withLetters();
    outcomes.clear();
    const [, second] = await letters(id);
    const one = { kind: "redeliver", eventId: second?.eventId } as const;
    expect(await order(id, one)).toEqual({ id, events: 1, deadLetters: { left: 2 } });
    expect(attempted()).toEqual(["2"]);
    await expect(order(id, one)).rejects.toEqual(refusal("eventNotExist"));
    await expect(order(id, { kind: "redeliver", eventId: "no" })).rejects.toEqual(refusal("eventIdIllegal"));
  });

  it("keeps a dead letter that fails again, counts the attempt, and continues with the next", async () => {
    const id = await withLetters();
    outcomes = new Map([["2", { status: "failed", reason: "answered 503" }]]);
    const [, { eventId } = { eventId: "" }] = await letters(id);
    const failure = { eventId, reason: "answered 503" };
    expect(await order(id, redeliver)).toEqual({ id, events: 2, deadLetters: { left: 1, failure } });
    expect(await letters(id)).toMatchObject([{ eventId, attempts: 2, reason: "answered 503" }]);
  });

  it.each<AttemptOutcome>([
    { status: "gone", reason: "answered 410" },
    { status: "failed", reason: "answered 429", retryAfterMs: 60_000 },
  ])("stops when the receiver wants no more events: %j", async (outcome) => {
    const id = await withLetters();
    outcomes = new Map([["1", outcome]]);
    expect(await order(id, redeliver)).toMatchObject({ events: 0, deadLetters: { left: 3 } });
    expect(attempted()).toEqual(["1"]);
  });

  it("stops after 30 s, and keeps the remaining dead letters", async () => {
    const id = await withLetters();
    engine.sink.receive("http://receiver/", async () => {
      await new Promise<void>((resolve) => void engine.clock.after(20_000, resolve));
      return { status: "accepted" };
    });
    const work = order(id, redeliver);
    await engine.clock.advance(60_000);
    expect(await work).toMatchObject({ events: 1, deadLetters: { left: 2 } });
  });

  it("repeats an event rather than losing it when the store fails after the receiver accepted", async () => {
    const memory = createMemoryStore();
    let isDown = false;
    const deadLetters = withCalls(memory.deadLetters, {
      remove: async (some) => {
        if (isDown) throw new Error("down");
        return memory.deadLetters.remove(some);
      },
    });
    const id = await withLetters({ store: withCalls(memory, { deadLetters }) });
    outcomes.clear();
    isDown = true;
    await expect(order(id, redeliver)).rejects.toThrow("down");
    isDown = false;
    expect(await order(id, redeliver)).toMatchObject({ events: 3 });
    expect(attempted()).toEqual(["1", "1", "2", "3"]);
  });

  it("is refused for a paused subscription, and works for a suspended one", async () => {
    const id = await withLetters();
    outcomes.clear();
    await order(id, { kind: "pause" });
    await expect(order(id, redeliver)).rejects.toEqual(refusal("subscriptionHeld"));
    expect(attempted()).toEqual([]);
    await order(id, { kind: "resume" });
    outcomes.set("4", { status: "gone", reason: "answered 410" });
    await engine.publish("a", "4");
    await engine.clock.advance(1_000);
    expect((await engine.broker.operator.getSubscription(testCaller, id)).subscription.state).toBe("suspended");
    expect(await order(id, redeliver)).toMatchObject({ events: 3 });
  });

  it("counts what it delivered, and says why it ended, if the subscription is paused meanwhile", async () => {
    const id = await withLetters();
    const accepted = createDeferred<AttemptOutcome>();
    engine.sink.receive("http://receiver/", () => accepted.promise);
    const [, { eventId } = { eventId: "" }] = await letters(id);
    const work = order(id, redeliver);
    await engine.clock.settle();
    await order(id, { kind: "pause" });
    accepted.resolve({ status: "accepted" });
    const failure = { eventId, reason: expect.stringContaining("resume it") };
    expect(await work).toEqual({ id, events: 1, deadLetters: { left: 2, failure } });
    expect(attempted()).toEqual(["1"]);
  });

  it.each([true, false])(
    "counts what it delivered, and what is left, if the store fails meanwhile; all: %s",
    async (isForAll) => {
      const memory = createMemoryStore();
      let isDown = false;
      const fail = (): void => {
        if (isDown) throw new Error("down");
      };
      const deadLetters = withCalls(memory.deadLetters, {
        remove: async (some) => memory.deadLetters.remove(some).finally(() => (isDown = true)),
        find: async (...call) => memory.deadLetters.find(...call).finally(fail),
        count: async (...call) => memory.deadLetters.count(...call).finally(fail),
      });
      const id = await withLetters({ store: withCalls(memory, { deadLetters }) });
      outcomes.clear();
      const [, { eventId } = { eventId: "" }] = await letters(id);
      const failure = { eventId, reason: errorCatalogue.unknown.message };
      const result = await order(id, { kind: "redeliver", eventId: isForAll ? undefined : eventId });
      expect(result).toEqual({ id, events: 1, deadLetters: { left: 2, ...(isForAll && { failure }) } });
      expect(attempted()).toEqual([isForAll ? "1" : "2"]);
    },
  );

  it("fails when the owner removes the subscription meanwhile", async () => {
    const id = await withLetters();
    engine.sink.receive("http://receiver/", async () => {
      await engine.broker.unSubscribe({ subscriptionId: id });
      return { status: "accepted" };
    });
    await expect(order(id, redeliver)).rejects.toEqual(refusal("subscriptionNotExist"));
    expect(attempted()).toEqual(["1"]);
  });

  it("leaves out the dead letters that a replay removes meanwhile: their events are delivered in order", async () => {
    const id = await withLetters();
    const accepted = createDeferred<AttemptOutcome>();
    engine.sink.receive("http://receiver/", ({ event }) =>
      textOf(event.content) === "1" ? accepted.promise : { status: "accepted" },
    );
    const [, second] = await letters(id);
    const work = order(id, redeliver);
    await engine.clock.settle();
    await order(id, { kind: "replay", from: second?.eventId ?? "" });
    accepted.resolve({ status: "accepted" });
    expect(await work).toEqual({ id, events: 1, deadLetters: { left: 0 } });
    expect(attempted()).toEqual(["1", "2", "3"]);
  });

  it("sends no event that a replay delivers while the order waits for the time of its block", async () => {
    const id = await withLetters();
    outcomes.clear();
    await order(id, { kind: "change", change: { form: "cloudevents" } });
    const answered = createDeferred<undefined>();
    engine.readBlock = () => answered.promise;
    const [first] = await letters(id);
    const work = order(id, redeliver);
    await engine.clock.settle();
    await order(id, { kind: "replay", from: first?.eventId ?? "" });
    answered.resolve(undefined);
    expect(await work).toEqual({ id, events: 0, deadLetters: { left: 0 } });
    await engine.clock.advance(1_000);
    expect(attempted()).toEqual(["1", "2", "3"]);
  });

  it("counts what it delivered if a reorg takes the other events away meanwhile", async () => {
    const id = await withLetters({ confirmations: 0 });
    const accepted = createDeferred<AttemptOutcome>();
    engine.sink.receive("http://receiver/", () => accepted.promise);
    const work = order(id, redeliver);
    await engine.clock.settle();
    engine.chain.cutBack(engine.chain.head - 2);
    engine.chain.sealEmpty();
    await engine.clock.advance(2_000);
    accepted.resolve({ status: "accepted" });
    expect(await work).toEqual({ id, events: 1, deadLetters: { left: 0 } });
    expect(attempted()).toEqual(["1"]);
  });

  it("sends to the url, with the secret, that the subscription has after the wait for the time of a block", async () => {
    const id = await withLetters();
    await order(id, { kind: "change", change: { form: "cloudevents", secret: secretNamed("old") } });
    const answered = createDeferred<undefined>();
    engine.readBlock = () => answered.promise;
    const work = order(id, redeliver);
    await engine.clock.settle();
    await order(id, { kind: "change", change: { url: "http://another/", secret: secretNamed("new") } });
    answered.resolve(undefined);
    expect(await work).toEqual({ id, events: 3, deadLetters: { left: 0 } });
    const sent = engine.sink.attempts.map(({ subscription: { url, secret } }) => ({ url, secret }));
    expect(sent).toEqual([1, 2, 3].map(() => ({ url: "http://another/", secret: secretNamed("new") })));
  });

  it("sends nothing if the subscription is paused during the wait for the time of a block", async () => {
    const id = await withLetters();
    await order(id, { kind: "change", change: { form: "cloudevents" } });
    const answered = createDeferred<undefined>();
    engine.readBlock = () => answered.promise;
    const work = order(id, redeliver);
    await engine.clock.settle();
    await order(id, { kind: "pause" });
    answered.resolve(undefined);
    await expect(work).rejects.toEqual(refusal("subscriptionHeld"));
    expect(attempted()).toEqual([]);
  });

  it("sends no event without an origin if the subscription changes to CloudEvents while the event is read", async () => {
    const memory = createMemoryStore();
    let reading = Promise.resolve();
    const findBatch: typeof memory.findBatch = (...call) => reading.then(() => memory.findBatch(...call));
    const id = await withLetters({ store: withCalls(memory, { findBatch }) });
    outcomes.clear();
    const read = createDeferred<void>();
    reading = read.promise;
    const work = order(id, redeliver);
    await engine.clock.settle();
    await order(id, { kind: "change", change: { form: "cloudevents" } });
    read.resolve();
    expect(await work).toEqual({ id, events: 0, deadLetters: { left: 3 } });
    expect(attempted()).toEqual([]);
    expect(await order(id, redeliver)).toMatchObject({ events: 3 });
  });

  it("sends no dead letter of a removed subscription to a new subscription with the same identifier", async () => {
    const id = await withLetters();
    engine.sink.receive("http://receiver/", async () => {
      await engine.broker.unSubscribe({ subscriptionId: id });
      await engine.subscribe("a", { subscriptionId: id, url: "http://another/" });
      return { status: "accepted" };
    });
    expect(await order(id, redeliver)).toMatchObject({ events: 0 });
    expect(attempted()).toEqual(["1"]);
  });

  it("removes no dead letter of a new subscription that has the identifier of a removed one", async () => {
    const id = await withLetters();
    const accepted = createDeferred<AttemptOutcome>();
    engine.sink.receive("http://receiver/", () => accepted.promise);
    engine.sink.receive("http://another/", () => failed);
    const work = order(id, redeliver);
    await engine.clock.settle();
    await engine.broker.unSubscribe({ subscriptionId: id });
    const options = { onFailure: "skip", attemptsMax: 1 };
    await engine.subscribe("a", { subscriptionId: id, url: "http://another/", offset: "OFFSET_FIRST", options });
    await engine.clock.advance(1_000);
    accepted.resolve({ status: "accepted" });
    expect(await work).toEqual({ id, events: 0, deadLetters: { left: 3 } });
  });

  it("makes no attempt at a node whose deliveries are paused", async () => {
    const id = await withLetters();
    engine.deliveries = "paused";
    await engine.rebuild();
    await engine.broker.start();
    await expect(order(id, redeliver)).rejects.toEqual(refusal("subscriptionHeld"));
    expect(attempted()).toEqual([]);
  });

  it("stops with the broker: an event accepted in time is removed before the store closes, and no other is sent", async () => {
    const memory = createMemoryStore();
    const calls: string[] = [];
    const deadLetters = withCalls(memory.deadLetters, {
      remove: async (some) => {
        calls.push("remove");
        return memory.deadLetters.remove(some);
      },
    });
    const stop = async (): Promise<void> => {
      calls.push("stop");
      await memory.stop();
    };
    const id = await withLetters({ store: withCalls(memory, { deadLetters, stop }) });
    engine.sink.receive("http://receiver/", async () => {
      await new Promise<void>((resolve) => void engine.clock.after(200, resolve));
      return { status: "accepted" };
    });
    const work = engine.broker.operator.orderSubscription(testCaller, id, { order: redeliver, isDryRun: false });
    await engine.clock.settle();
    await engine.stop();
    expect(await work).toEqual({ id, events: 1, deadLetters: { left: 2 } });
    expect([attempted(), calls]).toEqual([["1"], ["remove", "stop"]]);
    await expect(order(id, redeliver)).rejects.toEqual(refusal("busy"));
  });

  it("stops with the broker when the receiver hangs, and keeps the dead letter as it was", async () => {
    const id = await withLetters();
    engine.sink.receive("http://receiver/", () => new Promise(() => {}));
    const work = engine.broker.operator.orderSubscription(testCaller, id, { order: redeliver, isDryRun: false });
    await engine.clock.settle();
    await engine.stop();
    expect(await work).toEqual({ id, events: 0, deadLetters: { left: 3 } });
    expect(attempted()).toEqual(["1"]);
    expect(await engine.store.deadLetters.list(parseSubscriptionId(id), page)).toMatchObject(
      [1, 1, 1].map((attempts) => ({ attempts })),
    );
  });

  it.each([redeliver, discard])("refuses %j during a redelivery, and delivers each event once", async (second) => {
    const id = await withLetters();
    const accepted = createDeferred<AttemptOutcome>();
    engine.sink.receive("http://receiver/", () => accepted.promise);
    const first = order(id, redeliver);
    await engine.clock.settle();
    await expect(order(id, second)).rejects.toEqual(refusal("subscriptionHeld"));
    accepted.resolve({ status: "accepted" });
    expect(await first).toMatchObject({ events: 3 });
    expect(attempted()).toEqual(["1", "2", "3"]);
    expect(await order(id, second)).toMatchObject({ events: 0 });
  });
});

describe("discard", () => {
  it("removes one dead letter or all, delivers none, and logs what it removed", async () => {
    const lines: unknown[] = [];
    const info: Logger["info"] = (message, fields) => void lines.push([message, fields]);
    const logger: Logger = { ...silentLogger, info, child: () => logger };
    const id = await withLetters({ logger });
    lines.length = 0;
    const [first] = await letters(id);
    expect(await order(id, { kind: "discard", eventId: first?.eventId }, true)).toEqual({ id, events: 1 });
    expect(lines).toEqual([]);
    expect(await order(id, { kind: "discard", eventId: first?.eventId })).toMatchObject({ events: 1 });
    expect(await order(id, discard)).toEqual({ id, events: 2, deadLetters: { left: 0 } });
    expect([attempted(), await letters(id)]).toEqual([[], []]);
    const message = "dead letters discarded";
    expect(lines).toEqual([
      [message, { subscriptionId: id, events: 1, eventId: first?.eventId }],
      [message, { subscriptionId: id, events: 2 }],
    ]);
  });
});
