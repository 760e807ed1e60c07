import { afterEach, describe, expect, it } from "vitest";
import { deadLettersMax } from "../../domain/dead-letter.ts";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { type LogFields, type Logger, silentLogger } from "../../lib/logger.ts";
import { noMetrics } from "../../ports/metrics.ts";
import type { AttemptOutcome, Notification } from "../../ports/sink.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine, type TestEngineOptions } from "../testing/test-engine.ts";
import { withCalls } from "../../lib/with-calls.ts";

let engine: TestEngine;
afterEach(() => engine.stop());

const url = "http://receiver/";
const page = { after: undefined, limit: 2_000 };
const skip = { onFailure: "skip", attemptsMax: 3 } as const;
const failed: AttemptOutcome = { status: "failed", reason: "answered 500" };
const accepted: AttemptOutcome = { status: "accepted" };

async function start(options: TestEngineOptions = {}): Promise<TestEngine> {
  engine = await TestEngine.start(options);
  for (const topic of ["a", "b"]) await engine.broker.open({ topic, groupId: undefined });
  return engine;
}

/** Events whose text begins with "bad" fail. */
function refuseBad(outcome = failed): void {
  engine.sink.receive(url, (notification) => (textsOf(notification).some(isBad) ? outcome : { status: "accepted" }));
}

const textsOf = (notification: Notification): readonly string[] =>
  (notification.batch ?? [notification]).map(({ event }) => new TextDecoder().decode(event.content));
const isBad = (text: string): boolean => text.startsWith("bad");
const attempted = () => engine.sink.attempts.flatMap(textsOf);
const find = (id: string) => engine.broker.operator.getSubscription(testCaller, id);
const letters = async (id: string) => (await engine.broker.operator.listDeadLetters(testCaller, id, page)).items;
async function publishAll(topic: string, texts: readonly string[]): Promise<void> {
  for (const text of texts) await engine.publish(topic, text);
}

describe("an event whose attempts fail", () => {
  it("becomes a dead letter after attemptsMax attempts, and the next events are delivered", async () => {
    let added = 0;
    await start({ metrics: { ...noMetrics, deadLetters: (_, count) => void (added += count) } });
    refuseBad();
    const id = await engine.subscribe("a", { options: skip });
    await publishAll("a", ["1", "bad", "2"]);
    await engine.clock.advance(10_000);
    expect(attempted()).toEqual(["1", "bad", "bad", "bad", "2"]);
    const { subscription, deadLetters, lag } = await find(id);
    expect([subscription.state, subscription.notifiedCount, subscription.failedAttempts]).toEqual(["active", 2, 0]);
    expect([deadLetters, lag, added]).toEqual([1, 0, 1]);
    const [letter] = await letters(id);
    expect(letter).toMatchObject({ topic: "a", attempts: 3, reason: "answered 500" });
    expect((await engine.broker.getEvent({ eventId: letter?.eventId ?? "", groupId: undefined })).sequence).toBe(2);
  });

  it.each([{}, { concurrency: 2 }, { batchEvents: 2 }])(
    "delays the next event, options %j, by the wait that the receiver asked for with the last attempt",
    async (options) => {
      await start();
      refuseBad({ ...failed, retryAfterMs: 60_000 });
      await engine.subscribe("#", { options: { ...skip, attemptsMax: 1, ...options } });
      await engine.publish("a", "bad");
      await engine.clock.settle();
      await engine.publish("b", "1");
      await engine.clock.advance(59_000);
      expect(attempted()).toEqual(["bad"]);
      await engine.clock.advance(1_000);
      expect(attempted()).toEqual(["bad", "1"]);
    },
  );

  it.each([{}, { concurrency: 2 }, { batchEvents: 2 }])(
    "keeps the wait asked with the last attempt across a restart, options %j, for all events, also those that it had read before that attempt ended",
    async (options) => {
      await start();
      const { promise: outcome, resolve: answer } = createDeferred<AttemptOutcome>();
      engine.sink.receive(url, (notification) => (textsOf(notification).some(isBad) ? outcome : accepted));
      await engine.subscribe("#", { options: { ...skip, attemptsMax: 1, ...options } });
      await engine.publish("a", "bad");
      await engine.clock.settle();
      await engine.publish("a", "1");
      await engine.publish("b", "2");
      await engine.clock.settle();
      const retryAt = engine.clock.now() + 60_000;
      answer({ ...failed, retryAfterMs: 60_000 });
      await engine.clock.advance(1_000);
      const before = attempted();
      // It is stored while the worker runs, so it also survives a kill.
      expect(await engine.store.listSubscriptions()).toMatchObject([{ retryAt }]);
      await engine.rebuild();
      await engine.broker.start();
      await engine.clock.advance(50_000);
      expect(attempted()).toEqual(before);
      await engine.clock.advance(9_000);
      expect(attempted().slice(before.length)).toEqual(["1", "2"]);
    },
  );

  it("keeps the number of its attempts across restarts", async () => {
    await start();
    refuseBad();
    const id = await engine.subscribe("a", { options: { ...skip, attemptsMax: 4 } });
    await engine.publish("a", "bad");
    await engine.clock.advance(8_000);
    expect(attempted()).toHaveLength(3);
    // The number is stored while the worker runs, so it also survives a kill.
    expect(await engine.store.findSubscription(parseSubscriptionId(id))).toMatchObject({ failedAttempts: 2 });
    await engine.rebuild();
    await engine.broker.start();
    refuseBad();
    await engine.clock.advance(60_000);
    expect(attempted()).toHaveLength(4);
    expect(await letters(id)).toHaveLength(1);
  });

  it("is sent alone after a restart: in one batch with it, other events would become dead letters before their attempts are used up", async () => {
    await start();
    refuseBad();
    const id = await engine.subscribe("a", { options: { ...skip, batchEvents: 10, batchMs: 100 } });
    await engine.publish("a", "bad");
    await engine.clock.advance(4_000);
    await publishAll("a", ["1", "2"]);
    expect(attempted()).toEqual(["bad", "bad"]);
    await engine.rebuild();
    engine.sink.attempts.length = 0;
    refuseBad();
    await engine.broker.start();
    await engine.clock.advance(60_000);
    expect(engine.sink.attempts.map(textsOf)).toEqual([["bad"], ["1", "2"]]);
    expect(await letters(id)).toHaveLength(1);
  });

  it("suspends the subscription if the receiver is gone, even if failing events are to be skipped", async () => {
    await start();
    refuseBad({ status: "gone", reason: "answered 410" });
    const id = await engine.subscribe("a", { options: skip });
    await engine.publish("a", "bad");
    await engine.clock.advance(1_000);
    expect([(await find(id)).subscription.state, await letters(id)]).toEqual(["suspended", []]);
  });

  it("does not delay other topics, and becomes a dead letter only when the cursor has passed the events before it", async () => {
    await start();
    engine.sink.receive(url, async (notification) => {
      if (textsOf(notification).some(isBad)) return failed;
      await new Promise<void>((resolve) => void engine.clock.after(60_000, resolve));
      return { status: "accepted" };
    });
    const id = await engine.subscribe("#", { options: { ...skip, concurrency: 2 } });
    await publishAll("a", ["slow"]);
    await publishAll("b", ["bad"]);
    await engine.clock.advance(30_000);
    expect([await letters(id), (await find(id)).lag]).toEqual([[], 2]);
    await engine.clock.advance(31_000);
    expect([(await letters(id)).map(({ topic }) => topic), (await find(id)).lag]).toEqual([["b"], 0]);
  });

  it("makes every event of its batch a dead letter", async () => {
    await start();
    refuseBad();
    const id = await engine.subscribe("a", { options: { ...skip, batchEvents: 3, batchMs: 100 } });
    await publishAll("a", ["1", "bad", "2", "3"]);
    await engine.clock.advance(20_000);
    expect((await letters(id)).map(({ attempts }) => attempts)).toEqual([3, 3, 3]);
    expect((await find(id)).subscription.notifiedCount).toBe(1);
  });

  it("suspends the subscription when it has deadLettersMax dead letters, and loses no event", async () => {
    await start();
    refuseBad();
    const id = await engine.subscribe("#", { options: { onFailure: "skip", attemptsMax: 1, concurrency: 2 } });
    const numbers = Array.from({ length: deadLettersMax / 2 + 5 }, (_, index) => index);
    const publishing = numbers.flatMap((number) => ["a", "b"].map((topic) => engine.publish(topic, `bad ${number}`)));
    await Promise.all(publishing);
    await engine.clock.advance(5_000);
    const { subscription, deadLetters, lag } = await find(id);
    expect([subscription.state, deadLetters, lag]).toEqual(["suspended", deadLettersMax, 10]);
  });

  it("logs 20 lines when a receiver refuses 100 events at once, and counts the others in the next line", async () => {
    const lines: LogFields[] = [];
    const warn: Logger["warn"] = (message, fields = {}) => {
      if (message.startsWith("events skipped")) lines.push(fields);
    };
    const logger: Logger = { ...silentLogger, warn, child: () => logger };
    await start({ logger });
    refuseBad();
    const id = await engine.subscribe("a", { options: { ...skip, attemptsMax: 1 } });
    await Promise.all(Array.from({ length: 100 }, () => engine.publish("a", "bad")));
    await engine.clock.settle();
    expect(await letters(id)).toHaveLength(100);
    expect(lines.map(({ omitted }) => omitted)).toEqual(Array.from({ length: 20 }, () => undefined));
    await engine.clock.advance(1_000);
    await engine.publish("a", "bad");
    await engine.clock.advance(100);
    expect(lines.at(-1)).toMatchObject({ subscriptionId: id, events: 1, reason: "answered 500", omitted: 80 });
  });

  it("is one dead letter, not two, when it fails again after a replay", async () => {
    await start();
    refuseBad();
    const id = await engine.subscribe("a", { options: skip });
    await publishAll("a", ["bad", "2"]);
    await engine.clock.advance(10_000);
    const order = { kind: "replay", from: "OFFSET_FIRST" } as const;
    const replaying = engine.broker.operator.orderSubscription(testCaller, id, { order, isDryRun: false });
    await engine.clock.advance(1_000);
    await replaying;
    expect(await letters(id)).toEqual([]);
    await engine.clock.advance(10_000);
    expect(await letters(id)).toHaveLength(1);
  });

  it("is stored in one write with the cursor that passes it, even after failed writes", async () => {
    const memory = createMemoryStore();
    let failures = 3;
    const store = withCalls(memory, {
      saveProgress: async (rows) => {
        if (rows.some(({ skipped }) => skipped !== undefined) && (failures -= 1) >= 0) throw new Error("down");
        return memory.saveProgress(rows);
      },
    });
    await start({ store });
    refuseBad();
    const id = await engine.subscribe("a", { options: { ...skip, attemptsMax: 1 } });
    await publishAll("a", ["bad 1", "2", "bad 3", "4"]);
    await engine.clock.advance(60_000);
    const stored = await memory.findSubscription((await find(id)).subscription.id);
    expect([(await letters(id)).length, stored?.notifiedCount, failures < 0]).toEqual([2, 2, true]);
  });

  it("is stored by the next worker if the write that carries it fails while its subscription changes", async () => {
    const memory = createMemoryStore();
    const { promise: outcome, resolve: answer } = createDeferred<AttemptOutcome>();
    let [looksLeft, isDown] = [0, false];
    const store = withCalls(memory, {
      findSubscription: async (id) => {
        const found = await memory.findSubscription(id);
        if ((looksLeft -= 1) === 0) {
          answer(failed);
          await engine.clock.settle();
          isDown = true;
        }
        return found;
      },
      saveProgress: async (rows) => {
        if (isDown) throw new Error("down");
        return memory.saveProgress(rows);
      },
    });
    await start({ store });
    engine.sink.receive(url, (notification) => (textsOf(notification).some(isBad) ? outcome : { status: "accepted" }));
    const options = { onFailure: "skip", attemptsMax: 1 } as const;
    const subscriptionId = await engine.subscribe("a", { options });
    await engine.publish("a", "bad");
    looksLeft = 2; // The call looks the second time between its two writes of progress.
    await expect(engine.subscribe("a", { subscriptionId, options: { attemptsMax: 2 } })).rejects.toThrow("down");
    isDown = false;
    await publishAll("a", ["2"]);
    await engine.clock.advance(60_000);
    expect([attempted(), (await letters(subscriptionId)).length]).toEqual([["bad", "2"], 1]);
  });
});
