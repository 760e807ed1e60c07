import { encodeEvents } from "@stele/wire";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createDeferred } from "../lib/deferred.ts";
import { KeyedSlots } from "../lib/keyed-slots.ts";
import type { AttemptOutcome } from "../ports/sink.ts";
import { TestEngine, type TestEngineOptions } from "./testing/test-engine.ts";

let engine: TestEngine;
async function start(options: TestEngineOptions = {}): Promise<TestEngine> {
  engine = await TestEngine.start(options);
  return engine;
}
afterEach(() => engine.stop());

const topic = (name: string) => ({ topic: name, groupId: undefined });
const content = new Uint8Array([1, 2, 3]);
const state = async () => (await engine.listSubscriptions())[0]?.state;

async function restart(): Promise<void> {
  await engine.rebuild();
  await engine.broker.start();
}

describe("delivery", () => {
  it("retries an event with growing waits, and delivers the next one once the receiver accepts it", async () => {
    const { broker, sink, clock } = await start();
    await broker.open(topic("a"));
    let failures = 3;
    sink.receive("http://receiver/", () => {
      failures -= 1;
      return failures >= 0 ? { status: "failed", reason: "500" } : { status: "accepted" };
    });
    const id = await engine.subscribe("a");
    await engine.publishMany("a", 2);
    await clock.settle();
    expect(sink.sequencesOf(id)).toEqual([1]);
    await clock.advance(1_499);
    expect(sink.sequencesOf(id)).toEqual([1]);
    await clock.advance(1);
    expect(sink.sequencesOf(id)).toEqual([1, 1]);
    await clock.advance(3_000 + 6_000);
    expect(sink.sequencesOf(id)).toEqual([1, 1, 1, 1, 2]);
  });

  it("waits as long as the receiver's Retry-After asks before the next attempt", async () => {
    const { broker, sink, clock } = await start();
    await broker.open(topic("a"));
    let isFirst = true;
    sink.receive("http://receiver/", () => {
      const outcome: AttemptOutcome = isFirst
        ? { status: "failed", reason: "429", retryAfterMs: 60_000 }
        : { status: "accepted" };
      isFirst = false;
      return outcome;
    });
    const id = await engine.subscribe("a");
    await engine.publish("a", "1");
    await clock.advance(59_000);
    expect(sink.sequencesOf(id)).toEqual([1]);
    await clock.advance(2_000);
    expect(sink.sequencesOf(id)).toEqual([1, 1]);
  });

  it("subscribing again restarts the time after which a failing subscription is suspended", async () => {
    const { broker, sink, clock } = await start({ limits: { giveUpAfterMs: 100_000, retryDelayMsMax: 1_000 } });
    await broker.open(topic("a"));
    sink.receive("http://receiver/", () => ({ status: "failed", reason: "500" }));
    const id = await engine.subscribe("a");
    await engine.publish("a", "1");
    await clock.advance(90_000);
    await engine.subscribe("a", { subscriptionId: id });
    await clock.advance(20_000);
    expect(await engine.listSubscriptions()).toMatchObject([{ state: "active" }]);
    await clock.advance(90_000);
    expect(await engine.listSubscriptions()).toMatchObject([{ state: "suspended" }]);
  });

  it("a receiver that never answers delays only its own subscription", async () => {
    const { broker, sink, clock } = await start({ limits: { feedEventsMax: 4 } });
    await broker.open(topic("a"));
    sink.receive("http://hangs/", () => new Promise<AttemptOutcome>(() => {}));
    await engine.subscribe("a", { url: "http://hangs/" });
    const healthy = await engine.subscribe("a");
    await engine.publishMany("a", 20);
    await clock.settle();
    expect(sink.sequencesOf(healthy)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
    const [hanging] = await engine.listSubscriptions();
    expect(hanging).toMatchObject({ notifiedCount: 0, notifyingCount: 20 });
  });

  it("a subscription that waits for its next attempt does not block others of the same receiver", async () => {
    const { broker, sink, clock } = await start();
    sink.slots = new KeyedSlots(1);
    await broker.open(topic("a"));
    sink.receive("http://one/fails", () => ({ status: "failed", reason: "500" }));
    const failing = await engine.subscribe("a", { url: "http://one/fails" });
    const healthy = await engine.subscribe("a", { url: "http://one/works" });
    await engine.publishMany("a", 3);
    await clock.settle();
    expect(sink.sequencesOf(failing)).toEqual([1]);
    expect(sink.sequencesOf(healthy)).toEqual([1, 2, 3]);
  });

  it("a subscription that waits for a block's time does not block others of the same receiver", async () => {
    const { broker, sink, clock } = await start();
    sink.slots = new KeyedSlots(1);
    await broker.open(topic("a"));
    const waiting = await engine.subscribe("a", { url: "http://one/waits", options: { form: "cloudevents" } });
    const healthy = await engine.subscribe("a", { url: "http://one/works" });
    const answered = createDeferred<undefined>();
    engine.readBlock = () => answered.promise;
    await engine.publishMany("a", 3);
    await clock.settle();
    expect(sink.sequencesOf(healthy)).toEqual([1, 2, 3]);
    expect(sink.sequencesOf(waiting)).toEqual([]);
    answered.resolve(undefined);
    await clock.settle();
    expect(sink.sequencesOf(waiting)).toEqual([1, 2, 3]);
  });

  it("a removal or a stop takes a waiting subscription out of a busy receiver's queue, and a stop loses no event", async () => {
    const { broker, sink, clock } = await start();
    sink.slots = new KeyedSlots(1);
    await broker.open(topic("a"));
    const gate = createDeferred<AttemptOutcome>();
    sink.receive("http://one/slow", () => gate.promise);
    await engine.subscribe("a", { url: "http://one/slow" });
    const removed = await engine.subscribe("a", { url: "http://one/removed" });
    const waiting = await engine.subscribe("a", { url: "http://one/waits" });
    await engine.publishMany("a", 2);
    await clock.settle();
    expect(sink.slots.waitingCount).toBe(2);
    await broker.unSubscribe({ subscriptionId: removed });
    expect(sink.slots.waitingCount).toBe(1);
    await broker.stop(0);
    expect(sink.slots.waitingCount).toBe(0);
    gate.resolve({ status: "accepted" });
    await restart();
    await clock.settle();
    expect(sink.sequencesOf(waiting)).toEqual([1, 2]);
    expect(sink.sequencesOf(removed)).toEqual([]);
  });

  it.each(["the broker stops", "the url changes"])(
    "skips no event that is committed while %s during an attempt",
    async (what) => {
      const { broker, sink, clock } = await start();
      await broker.open(topic("a"));
      const gate = createDeferred<AttemptOutcome>();
      sink.receive("http://slow/", () => gate.promise);
      const id = await engine.subscribe("a", { url: "http://slow/" });
      await engine.publish("a", "1");
      await clock.settle();
      const ended =
        what === "the broker stops"
          ? broker.stop(1_000)
          : engine.subscribe("a", { subscriptionId: id, url: "http://new/" });
      await clock.settle();
      const { address } = await broker.state(topic("a"));
      engine.chain.publish([{ address, count: 1, events: encodeEvents([{ content, extensions: [] }]) }]);
      await clock.settle();
      gate.resolve({ status: "accepted" });
      await ended;
      if (what === "the broker stops") {
        sink.receive("http://slow/", () => ({ status: "accepted" }));
        await engine.rebuild();
        await engine.broker.start();
      }
      await engine.publish("a", "3");
      await clock.settle();
      expect(new Set(sink.sequencesOf(id))).toEqual(new Set([1, 2, 3]));
    },
  );

  it("starts no attempt after stop", async () => {
    const { broker, sink, clock } = await start();
    await broker.open(topic("a"));
    sink.receive("http://hangs/", () => new Promise<AttemptOutcome>(() => {}));
    await engine.subscribe("a", { url: "http://hangs/" });
    await engine.publish("a", "1");
    await clock.settle();
    const stopped = broker.stop(1_000);
    await clock.advance(100);
    const id = await engine.subscribe("a", { offset: "OFFSET_FIRST" });
    await clock.advance(900);
    await stopped;
    expect(sink.sequencesOf(id)).toEqual([]);
  });

  it.each([{ feedEventsMax: 1 }, { feedBytesMax: 1 }])(
    "an idle subscription gets a batch that exceeds %j",
    async (limits) => {
      const { broker, sink, clock } = await start({ limits });
      await broker.open(topic("a"));
      const id = await engine.subscribe("a");
      await clock.settle();
      const { address } = await broker.state(topic("a"));
      const payloads = [1, 2].map(() => ({ content, extensions: [] }));
      engine.chain.publish([{ address, count: 2, events: encodeEvents(payloads) }]);
      await clock.settle();
      expect(sink.sequencesOf(id)).toEqual([1, 2]);
    },
  );

  it("makes no attempt while deliveries are paused, and continues from the cursors when they are active again", async () => {
    const { broker, sink, clock } = await start({ limits: { giveUpAfterMs: 10_000 } });
    await broker.open(topic("a"));
    const id = await engine.subscribe("a");
    await engine.publish("a", "1");
    await clock.settle();
    engine.deliveries = "paused";
    await engine.rebuild();
    await engine.broker.start();
    const later = await engine.subscribe("#");
    await engine.publishMany("a", 3);
    await clock.advance(60_000);
    expect(sink.attempts).toHaveLength(1);
    expect(await engine.listSubscriptions()).toMatchObject([
      { state: "active", notifiedCount: 1, notifyingCount: 3 },
      { state: "active", notifiedCount: 0, notifyingCount: 3 },
    ]);
    expect(engine.broker.health()).toMatchObject([{ ready: true, warning: expect.stringContaining("paused") }]);
    engine.deliveries = "active";
    await engine.rebuild();
    await engine.broker.start();
    await clock.settle();
    expect(sink.sequencesOf(id)).toEqual([1, 2, 3, 4]);
    expect(sink.sequencesOf(later)).toEqual([2, 3, 4]);
  });

  it("suspends a subscription whose receiver is gone or fails too long, and resumes it at its cursor on subscribe", async () => {
    const { broker, sink, clock } = await start({ limits: { giveUpAfterMs: 10_000 } });
    await broker.open(topic("a"));
    sink.receive("http://gone/", () => ({ status: "gone", reason: "410" }));
    sink.receive("http://down/", () => ({ status: "failed", reason: "500" }));
    const gone = await engine.subscribe("a", { url: "http://gone/" });
    const down = await engine.subscribe("a", { url: "http://down/" });
    await engine.publishMany("a", 2);
    await clock.advance(60_000);
    const states = (await engine.listSubscriptions()).map((row) => [row.state, row.notifyingCount]);
    expect(states).toEqual([
      ["suspended", 2],
      ["suspended", 2],
    ]);
    for (const id of [gone, down]) await engine.subscribe("a", { subscriptionId: id });
    await clock.settle();
    expect(sink.sequencesOf(gone)).toEqual([1, 1, 2]);
    expect(sink.sequencesOf(down).slice(-2)).toEqual([1, 2]);
  });

  describe("to a failing receiver across restarts of the broker", () => {
    const limits = { giveUpAfterMs: 60_000, retryDelayMsMax: 5_000 };
    let isWorking: boolean;
    let id: string;

    beforeEach(async () => {
      const { broker, sink, clock } = await start({ limits });
      isWorking = false;
      sink.receive("http://receiver/", () =>
        isWorking ? { status: "accepted" } : { status: "failed", reason: "500" },
      );
      await broker.open(topic("a"));
      id = await engine.subscribe("a");
      await engine.publish("a", "1");
      await clock.advance(40_000);
    });

    it("suspends the subscription after the same failed time as without restarts", async () => {
      for (const runMs of [7_000, 3_000]) {
        await restart();
        await engine.clock.advance(runMs);
      }
      expect(await state()).toBe("active");
      await engine.clock.advance(20_000);
      expect(await state()).toBe("suspended");
    });

    it("does not count a wait that a restart cut short as failed time", async () => {
      for (let run = 0; run < 10; run += 1) {
        await restart();
        await engine.clock.advance(1_000);
      }
      expect(await state()).toBe("active");
    });

    it("resets the failed time when the receiver accepts", async () => {
      isWorking = true;
      await engine.clock.advance(10_000);
      expect(engine.sink.sequencesOf(id).at(-1)).toBe(1);
      isWorking = false;
      await engine.publish("a", "2");
      await engine.clock.advance(5_000);
      await restart();
      await engine.clock.advance(45_000);
      expect(await state()).toBe("active");
      await engine.clock.advance(20_000);
      expect(await state()).toBe("suspended");
    });
  });

  it("saves the growing failedMs of a subscription about once an hour while its receiver fails", async () => {
    const { broker, sink, clock, store } = await start();
    await broker.open(topic("a"));
    sink.receive("http://receiver/", () => ({ status: "failed", reason: "500" }));
    const id = await engine.subscribe("a");
    await engine.publish("a", "1");
    const saveProgress = store.saveProgress.bind(store);
    let writes = 0;
    store.saveProgress = (rows) => {
      writes += 1;
      return saveProgress(rows);
    };
    await clock.advance(8 * 3_600_000);
    expect(sink.sequencesOf(id).length).toBeGreaterThan(50);
    expect(writes).toBeGreaterThan(5);
    expect(writes).toBeLessThan(9);
  });

  it("resumes a subscription on subscribe even if the store could not write its suspension", async () => {
    const { broker, sink, clock, store } = await start();
    await broker.open(topic("a"));
    let isGone = true;
    sink.receive("http://receiver/", () => (isGone ? { status: "gone", reason: "410" } : { status: "accepted" }));
    store.setSubscriptionState = () => Promise.reject(new Error("disk full"));
    const id = await engine.subscribe("a");
    await engine.publish("a", "1");
    await clock.settle();
    isGone = false;
    await engine.subscribe("a", { subscriptionId: id });
    await clock.settle();
    expect(sink.sequencesOf(id)).toEqual([1, 1]);
  });

  it("suspends a subscription later if the store could not write its suspension", async () => {
    const { broker, sink, clock, store } = await start();
    await broker.open(topic("a"));
    sink.receive("http://receiver/", () => ({ status: "gone", reason: "410" }));
    const suspend = store.setSubscriptionState.bind(store);
    store.setSubscriptionState = () => Promise.reject(new Error("locked"));
    const id = await engine.subscribe("a");
    await engine.publish("a", "1");
    await clock.advance(60_000);
    expect([await state(), sink.sequencesOf(id).length]).toEqual(["active", 1]);
    store.setSubscriptionState = suspend;
    await clock.advance(300_000);
    expect([await state(), sink.sequencesOf(id).length]).toEqual(["suspended", 2]);
  });

  it("resumes a suspended subscription after its acknowledged events, even if its cursor was not written yet", async () => {
    const { broker, sink, clock } = await start();
    await broker.open(topic("a"));
    sink.receive("http://receiver/", ({ event }) =>
      event.sequence === 2 ? { status: "gone", reason: "410" } : { status: "accepted" },
    );
    const id = await engine.subscribe("a");
    await engine.publishMany("a", 2);
    await clock.settle();
    await engine.subscribe("a", { subscriptionId: id, url: "http://new/" });
    await clock.settle();
    expect(sink.sequencesOf(id)).toEqual([1, 2, 2]);
  });

  it("writes the acknowledgements of a subscription before its suspension", async () => {
    const { broker, sink, clock, store } = await start();
    await broker.open(topic("a"));
    sink.receive("http://receiver/", ({ event }) =>
      event.sequence === 2 ? { status: "gone", reason: "410" } : { status: "accepted" },
    );
    const suspend = store.setSubscriptionState.bind(store);
    let written: number | undefined;
    store.setSubscriptionState = async (key, state) => {
      written = (await store.findSubscription(key.id))?.notifiedCount;
      return suspend(key, state);
    };
    await engine.subscribe("a");
    await engine.publishMany("a", 2);
    await clock.settle();
    expect(written).toBe(1);
  });

  it("counts waiting and acknowledged events of all topics that match a pattern", async () => {
    const { broker, sink, clock } = await start();
    await broker.open(topic("a/1"));
    await broker.open(topic("a/2"));
    let accepted = 0;
    sink.receive("http://receiver/", () => {
      accepted += 1;
      return accepted <= 3 ? { status: "accepted" } : { status: "failed", reason: "503" };
    });
    await engine.subscribe("a/#");
    await engine.publishMany("a/1", 4);
    await engine.publishMany("a/2", 3);
    await clock.settle();
    expect(await engine.listSubscriptions()).toMatchObject([{ notifiedCount: 3, notifyingCount: 4 }]);
  });
});
