import { BrokerError, errorCatalogue, type ErrorName } from "@stele/wire";
import { afterEach, describe, expect, it } from "vitest";
import type { AttemptOutcome } from "../../ports/sink.ts";
import type { Store } from "../../ports/store.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine, type TestEngineOptions } from "../testing/test-engine.ts";
import { withCalls } from "../../lib/with-calls.ts";
import type { EventBound, SubscriptionOrder } from "./calls.ts";

let engine: TestEngine;
async function start(options: TestEngineOptions = {}): Promise<TestEngine> {
  engine = await TestEngine.start(options);
  await engine.broker.open({ topic: "a", groupId: undefined });
  return engine;
}
afterEach(() => engine.stop());

const refusal = (name: ErrorName): unknown => expect.objectContaining({ code: errorCatalogue[name].code });
const page = { after: undefined, limit: 50 };
const order = (id: string, one: SubscriptionOrder, isDryRun = false) =>
  settle(engine.broker.operator.orderSubscription(testCaller, id, { order: one, isDryRun }));
const find = (id: string) => engine.broker.operator.getSubscription(testCaller, id);
const stateOf = async (id: string) => (await find(id)).subscription.state;
const down: AttemptOutcome = { status: "failed", reason: "500" };

/** Lets the work end: an order stops the worker, whose attempt in progress may take a second of virtual time. */
async function settle<Result>(work: Promise<Result>): Promise<Result> {
  work.catch(() => undefined);
  await engine.clock.settle();
  await engine.clock.advance(1_000);
  return work;
}

/** A subscription whose receiver fails until `works` is called. */
async function failing(url = "http://down/") {
  let outcome: AttemptOutcome = down;
  engine.sink.receive(url, () => outcome);
  const id = await engine.subscribe("a", { url });
  return { id, works: () => void (outcome = { status: "accepted" }) };
}

describe("orders", () => {
  it("pause lasts even when the owner subscribes again, and resume delivers the events that came meanwhile", async () => {
    const { sink, clock } = await start();
    const id = await engine.subscribe("a");
    await engine.publishMany("a", 1);
    await clock.settle();
    expect(await order(id, { kind: "pause" })).toEqual({ id, events: 0 });
    await engine.publishMany("a", 2);
    await engine.subscribe("a", { subscriptionId: id });
    await clock.advance(10_000);
    expect([await stateOf(id), (await find(id)).lag, sink.sequencesOf(id)]).toEqual(["paused", 2, [1]]);
    expect(await order(id, { kind: "resume" })).toEqual({ id, events: 2 });
    await clock.settle();
    expect(sink.sequencesOf(id)).toEqual([1, 2, 3]);
  });

  it("a paused subscription stays paused over a restart", async () => {
    const { clock, sink } = await start();
    const id = await engine.subscribe("a");
    await order(id, { kind: "pause" });
    await engine.rebuild();
    await engine.broker.start();
    await engine.publishMany("a", 1);
    await clock.advance(10_000);
    expect([await stateOf(id), sink.sequencesOf(id)]).toEqual(["paused", []]);
  });

  it("retry attempts at once when the next attempt is minutes away", async () => {
    const { clock, sink } = await start();
    const { id, works } = await failing();
    await engine.publishMany("a", 1);
    await clock.advance(600_000);
    const attempts = sink.sequencesOf(id).length;
    works();
    await order(id, { kind: "retry" });
    expect(sink.sequencesOf(id)).toHaveLength(attempts + 1);
    expect((await find(id)).lag).toBe(0);
  });

  it.each(["resume", "retry"] as const)("%s delivers to a suspended subscription again", async (kind) => {
    const { clock, sink } = await start();
    let outcome: AttemptOutcome = { status: "gone", reason: "410" };
    sink.receive("http://gone/", () => outcome);
    const id = await engine.subscribe("a", { url: "http://gone/" });
    await engine.publishMany("a", 2);
    await clock.settle();
    expect(await stateOf(id)).toBe("suspended");
    outcome = { status: "accepted" };
    expect(await order(id, { kind })).toEqual({ id, events: 2 });
    await clock.settle();
    expect([await stateOf(id), sink.sequencesOf(id)]).toEqual(["active", [1, 1, 2]]);
  });

  it("skip moves the cursor past the failing event, or past a named event, and delivers the later events in order", async () => {
    const { clock, sink } = await start();
    const { id, works } = await failing();
    await engine.publishMany("a", 6);
    await clock.settle();
    expect(await order(id, { kind: "skip", to: undefined })).toEqual({ id, events: 1 });
    expect(await order(id, { kind: "skip", to: { sequence: 4 } })).toEqual({ id, events: 3 });
    works();
    await clock.advance(10_000);
    expect([...new Set(sink.sequencesOf(id))]).toEqual([1, 2, 5, 6]);
    expect(await order(id, { kind: "skip", to: undefined })).toEqual({ id, events: 0 });
  });

  it.each<[string, (ids: readonly string[]) => SubscriptionOrder & { readonly kind: "replay" }, readonly number[]]>([
    ["the first event", () => ({ kind: "replay", from: "OFFSET_FIRST" }), [1, 2, 3, 4]],
    ["an eventId", (ids) => ({ kind: "replay", from: ids[1] ?? "" }), [2, 3, 4]],
    ["a sequence", () => ({ kind: "replay", from: { sequence: 4 } }), [4]],
    ["a time before the first event", () => ({ kind: "replay", from: { time: 0 } }), [1, 2, 3, 4]],
    ["the end", () => ({ kind: "replay", from: "OFFSET_LAST" }), []],
  ])("replay from %s repeats the events from there, or is refused if it is the end", async (_, toOrder, expected) => {
    const { clock, sink } = await start();
    const id = await engine.subscribe("a");
    const ids: string[] = [];
    for (let index = 0; index < 4; index += 1) ids.push(await engine.publish("a", String(index)));
    await clock.settle();
    const one = toOrder(ids);
    const isRefused = one.from === "OFFSET_LAST";
    const dry = order(id, one, true);
    if (isRefused) {
      await expect(dry).rejects.toEqual(refusal("parameterInvalid"));
      return;
    }
    expect(await dry).toEqual({ id, events: expected.length });
    expect(sink.sequencesOf(id)).toEqual([1, 2, 3, 4]);
    expect(await order(id, one)).toEqual({ id, events: expected.length });
    await clock.settle();
    expect(sink.sequencesOf(id)).toEqual([1, 2, 3, 4, ...expected]);
  });

  it("skip moves no further if the receiver accepts the skipped event meanwhile", async () => {
    const { clock, sink } = await start();
    const answers: ((outcome: AttemptOutcome) => void)[] = [];
    sink.receive("http://slow/", () => new Promise((resolve) => void answers.push(resolve)));
    const id = await engine.subscribe("a", { url: "http://slow/" });
    await engine.publishMany("a", 2);
    await clock.settle();
    expect(sink.sequencesOf(id)).toEqual([1]);
    const skipped = engine.broker.operator.orderSubscription(testCaller, id, {
      order: { kind: "skip", to: undefined },
      isDryRun: false,
    });
    await clock.settle();
    answers[0]?.({ status: "accepted" });
    expect(await settle(skipped)).toEqual({ id, events: 0 });
    await clock.settle();
    expect(sink.sequencesOf(id)).toEqual([1, 2]);
  });

  it.each<[string, ErrorName, () => Promise<"rolled-back">]>([
    ["the index keeps rolling back", "busy", async () => "rolled-back"],
    ["the store is unreachable", "storeUnreachable", () => Promise.reject(new BrokerError("storeUnreachable"))],
  ])("an order that fails because %s does not stop delivery", async (_, name, fail) => {
    const memory = createMemoryStore();
    let isWorking = false;
    const store = withCalls(memory, {
      moveSubscription: (...args) => (isWorking ? memory.moveSubscription(...args) : fail()),
    });
    const { clock, sink } = await start({ store });
    const id = await engine.subscribe("a");
    await expect(order(id, { kind: "pause" })).rejects.toEqual(refusal(name));
    await engine.publishMany("a", 1);
    await clock.settle();
    expect(sink.sequencesOf(id)).toEqual([1]);
    isWorking = true;
    expect(await order(id, { kind: "pause" })).toEqual({ id, events: 0 });
  });

  it("an order whose place does not exist leaves the attempt in progress alone", async () => {
    const { clock, sink } = await start();
    sink.receive("http://slow/", () => new Promise(() => {}));
    const id = await engine.subscribe("a", { url: "http://slow/" });
    await engine.publishMany("a", 1);
    await clock.settle();
    await expect(order(id, { kind: "replay", from: { sequence: 9 } })).rejects.toEqual(refusal("eventNotExist"));
    await clock.settle();
    expect(sink.sequencesOf(id)).toEqual([1]);
  });

  it("an order that is refused does not stop delivery", async () => {
    const { clock, sink } = await start();
    const id = await engine.subscribe("a");
    await engine.publishMany("a", 1);
    await clock.settle();
    await expect(order(id, { kind: "skip", to: "OFFSET_FIRST" })).rejects.toEqual(refusal("parameterInvalid"));
    await expect(order(id, { kind: "replay", from: { sequence: 9 } })).rejects.toEqual(refusal("eventNotExist"));
    await engine.publishMany("a", 1);
    await clock.settle();
    expect(sink.sequencesOf(id)).toEqual([1, 2]);
  });

  it("names every form of a place if an order misspells it", async () => {
    await start();
    const id = await engine.subscribe("a");
    await expect(order(id, { kind: "replay", from: "yesterday" })).rejects.toThrow(
      /"yesterday" is not OFFSET_FIRST, OFFSET_LAST, a time such as \S+, a sequence of the topic or an eventId/,
    );
  });

  it("refuses retry of a paused subscription, and any order for an unknown one", async () => {
    await start();
    const id = await engine.subscribe("a");
    await order(id, { kind: "pause" });
    await expect(order(id, { kind: "retry" })).rejects.toEqual(refusal("subscriptionHeld"));
    const other = "00000000-0000-4000-8000-00000000ffff";
    await expect(order(other, { kind: "pause" })).rejects.toEqual(refusal("subscriptionNotExist"));
  });

  it.each(["retry", "test"] as const)("refuses %s while deliveries are paused, also as a dry run", async (kind) => {
    const { sink, clock } = await start({ deliveries: "paused" });
    const id = await engine.subscribe("a");
    await engine.publishMany("a", 1);
    await expect(order(id, { kind }, true)).rejects.toEqual(refusal("subscriptionHeld"));
    await expect(order(id, { kind })).rejects.toEqual(refusal("subscriptionHeld"));
    await clock.advance(10_000);
    expect([sink.attempts, sink.tested]).toEqual([[], []]);
  });

  it("carries out an order for each subscription that a search finds", async () => {
    const { clock, sink } = await start();
    const { works, id: first } = await failing("http://one.example:81/x");
    const second = await engine.subscribe("a", { url: "http://two.example/" });
    const third = await engine.subscribe("a", { url: "http://two.example/again" });
    const call = { order: { kind: "pause" }, isDryRun: false, ...page } as const;
    const paused = await settle(engine.broker.operator.orderSubscriptions(testCaller, { host: "two.example" }, call));
    expect(paused.items.map(({ id }) => id)).toEqual([second, third]);
    works();
    await engine.publishMany("a", 1);
    await clock.settle();
    expect([first, second, third].map((id) => sink.sequencesOf(id))).toEqual([[1], [], []]);
  });

  it("waits only once for the hung attempts of 32 subscriptions", async () => {
    const { clock, sink } = await start();
    sink.receive("http://hung/", () => new Promise(() => {}));
    const ids: string[] = [];
    for (let count = 0; count < 32; count += 1) ids.push(await engine.subscribe("a", { url: "http://hung/" }));
    await engine.publishMany("a", 1);
    await clock.settle();
    expect(sink.attempts).toHaveLength(ids.length);
    const call = { order: { kind: "pause" }, isDryRun: false, ...page } as const;
    let paused: readonly string[] = [];
    const ordering = engine.broker.operator.orderSubscriptions(testCaller, {}, call);
    void ordering.then(({ items }) => (paused = items.map(({ id }) => id)));
    await clock.settle();
    expect(paused).toEqual([]);
    await clock.advance(1_000);
    expect(paused).toEqual(ids.toSorted());
  });
});

describe("a search", () => {
  it("finds by state, kind, topic, prefix, host, failure and lag, page by page", async () => {
    const { clock } = await start();
    const healthy = await engine.subscribe("a", { url: "http://up/", format: "JsonRPC" });
    const { id: failed } = await failing("https://down.example/hook");
    const pattern = await engine.subscribe("orders/#", { url: "http://up/2" });
    await engine.publishMany("a", 3);
    await clock.advance(5_000);
    const search = async (call: object) => {
      const found = await engine.broker.operator.searchSubscriptions(testCaller, call, page);
      return found.items.map(({ subscription: { id } }) => id);
    };
    expect(await search({})).toEqual([healthy, failed, pattern]);
    expect(await search({ kind: "JsonRPC" })).toEqual([healthy]);
    expect(await search({ topic: "orders/#" })).toEqual([pattern]);
    expect(await search({ prefix: "ord" })).toEqual([pattern]);
    expect(await search({ host: "down.example" })).toEqual([failed]);
    expect(await search({ failingMsMin: 1 })).toEqual([failed]);
    expect(await search({ failingMsMin: 6_000 })).toEqual([]);
    expect(await search({ lagMin: 3 })).toEqual([failed]);
    expect(await search({ state: "suspended" })).toEqual([]);
    const first = await engine.broker.operator.searchSubscriptions(testCaller, {}, { ...page, limit: 2 });
    const rest = await engine.broker.operator.searchSubscriptions(testCaller, {}, { after: first.next, limit: 2 });
    expect([first.items.length, rest.items.length, rest.next]).toEqual([2, 1, undefined]);
  });

  it("shows the last attempts, when the next attempt is due, and since when the oldest event waits", async () => {
    const { clock, sink } = await start();
    const { id } = await failing();
    await engine.publishMany("a", 1);
    await clock.settle();
    const { attempts, nextAttemptAt, waitingSince, subscription, lag } = await find(id);
    expect(attempts).toMatchObject([{ outcome: "failed", reason: "500", count: 1, at: clock.now() }]);
    expect(nextAttemptAt).toBe(clock.now() + 1_500);
    expect(waitingSince).toBeDefined();
    expect([subscription.failedAttempts, subscription.failingSince, lag]).toEqual([1, clock.now(), 1]);
    expect(sink.attempts).toHaveLength(1);
    const { items } = await engine.broker.operator.searchSubscriptions(testCaller, {}, page);
    expect(items).toMatchObject([{ nextAttemptAt, waitingSince, lastAttempt: attempts[0], lag: 1 }]);
  });
});

describe("work for many subscriptions", () => {
  const patterns = ["+/b", "a/+", "#", "+/#", "a/#"];

  /** Creates subscriptions with distinct patterns and a receiver that fails, so that three events wait for each. */
  async function startWaiting(replaced: (memory: Store) => Partial<Store>): Promise<readonly string[]> {
    const memory = createMemoryStore();
    await start({ store: withCalls(memory, replaced(memory)) });
    await engine.broker.open({ topic: "a/b", groupId: undefined });
    engine.sink.receive("http://down/", () => down);
    const ids = await Promise.all(patterns.map((topic) => engine.subscribe(topic, { url: "http://down/" })));
    await engine.publishMany("a/b", 3);
    await engine.clock.settle();
    return ids;
  }

  it.each([true, false])("counts the events of all subscriptions together (dry run: %s)", async (isDryRun) => {
    let ranges = 0;
    const ids = await startWaiting((memory) => ({
      countRange: (...call) => {
        ranges += 1;
        return memory.countRange(...call);
      },
    }));
    ranges = 0;
    const call = { ...page, order: { kind: "pause" } as const, isDryRun };
    const { items } = await settle(engine.broker.operator.orderSubscriptions(testCaller, {}, call));
    expect(items).toEqual(expect.arrayContaining(ids.map((id) => ({ id, events: 3 }))));
    expect(ranges).toBeLessThanOrEqual(2); // for the search and for the order
  });

  it("ends when the caller leaves, and changes no subscription", async () => {
    const left = new AbortController();
    let moves = 0;
    const ids = await startWaiting((memory) => ({
      searchSubscriptions: async (...call) => {
        const found = await memory.searchSubscriptions(...call);
        left.abort();
        return found;
      },
      moveSubscription: (...call) => {
        moves += 1;
        return memory.moveSubscription(...call);
      },
    }));
    const caller = { ...testCaller, signal: left.signal };
    const call = { ...page, order: { kind: "pause" } as const, isDryRun: false };
    const { operator } = engine.broker;
    await expect(settle(operator.orderSubscriptions(caller, {}, call))).rejects.toThrow("no longer waits");
    await expect(operator.searchSubscriptions(caller, {}, page)).rejects.toThrow("no longer waits");
    await expect(operator.getSubscription(caller, ids[0] ?? "")).rejects.toThrow("no longer waits");
    await expect(operator.getTopic(caller, "a/b", undefined)).rejects.toThrow("no longer waits");
    expect(moves).toBe(0);
  });
});

describe("topics", () => {
  it("are found by prefix and pattern, and list their events newest first, page by page", async () => {
    await start();
    for (const topic of ["b/1", "b/2", "c"]) await engine.broker.open({ topic, groupId: undefined });
    await engine.publishMany("b/1", 5);
    const { operator } = engine.broker;
    const names = async (call: { prefix?: string; filter?: string }) =>
      (await operator.searchTopics(testCaller, { groupId: undefined, ...call }, page)).items.map(({ name }) => name);
    expect(await names({ prefix: "b/" })).toEqual(["b/1", "b/2"]);
    expect(await names({ filter: "+/2" })).toEqual(["b/2"]);
    await engine.subscribe("b/#");
    expect(await operator.getTopic(testCaller, "b/1", undefined)).toMatchObject({ events: 5, subscriptions: 1 });
    const call = { topic: "b/1", groupId: undefined, limit: 2 };
    const first = await operator.listEvents(testCaller, { ...call, before: undefined });
    expect(first.items.map(({ sequence }) => sequence)).toEqual([5, 4]);
    const second = await operator.listEvents(testCaller, { ...call, before: { sequence: Number(first.next) } });
    expect(second.items.map(({ sequence }) => sequence)).toEqual([3, 2]);
    const third = await operator.listEvents(testCaller, { ...call, before: { sequence: Number(second.next) } });
    expect([third.items.map(({ sequence }) => sequence), third.next]).toEqual([[1], undefined]);
  });

  it("list their events in pages of at most a mebibyte, but at least one event", async () => {
    await start({ limits: { contentBytesMax: 2 ** 21 } });
    for (const kibibytes of [600, 600, 2_000, 1]) await engine.publish("a", "x".repeat(kibibytes * 1_024));
    const pages: number[][] = [];
    for (let before: EventBound | undefined, isMore = true; isMore; ) {
      const call = { topic: "a", groupId: undefined, limit: 50, before };
      const { items, next } = await engine.broker.operator.listEvents(testCaller, call);
      pages.push(items.map(({ sequence }) => sequence));
      [before, isMore] = [{ sequence: Number(next) }, next !== undefined];
    }
    expect(pages).toEqual([[4], [3], [2], [1]]);
  });
});

it("counts what this node does in intervals of five seconds, and keeps them for an hour", async () => {
  const { clock } = await start({ readMemory: () => 1 });
  await engine.subscribe("a");
  await failing();
  await engine.publishMany("a", 3);
  await clock.advance(5_000);
  const [first] = engine.broker.operator.listFigures(testCaller);
  expect(first).toMatchObject({ published: 3, commits: 3, delivered: 3, attemptMs: { p50: 0 } });
  expect(first?.failed).toBeGreaterThan(0);
  await clock.advance(2 * 3_600_000);
  expect(engine.broker.operator.listFigures(testCaller)).toHaveLength(720);
});
