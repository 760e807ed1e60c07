import { operations } from "@stele/wire";
import { afterEach, expect, test } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { endOfBlock, positionZero } from "../../domain/position.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import type { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import { noMetrics } from "../../ports/metrics.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { EventBound } from "../operate/calls.ts";
import { testCaller } from "../testing/as-caller.ts";
import { keyedCall, refusal, sendKeyed } from "../testing/keyed-publish.ts";
import type { ScrubReport } from "../integrity/scrubber.ts";
import { TestEngine, type TestEngineOptions } from "../testing/test-engine.ts";

const topic = parseTopicName("orders");
const minuteMs = 60_000;
const retentionMs = 24 * minuteMs;
const count = 10;

let engine: TestEngine | undefined;
afterEach(async () => engine?.stop());

/** Starts an engine and publishes events, which are younger than the retention time until {@link passTime}. */
async function startOld(options: TestEngineOptions = {}) {
  const store = createMemoryStore();
  const dropped = { batches: 0, bytes: 0, block: 0 };
  const metrics = {
    ...noMetrics,
    eventsDropped: (_: string, measure: typeof dropped) => {
      dropped.batches += measure.batches;
      dropped.bytes += measure.bytes;
      dropped.block = Math.max(dropped.block, measure.block);
    },
  };
  const started = await TestEngine.start({ store, metrics, retentionMs, ...options });
  engine = started;
  await started.broker.open({ topic, groupId: undefined });
  const eventIds: string[] = [];
  for (let index = 0; index < count; index += 1) eventIds.push(await started.publish(topic, `event ${index}`));
  const read = async (eventId = ""): Promise<string> =>
    Buffer.from((await started.broker.getEvent({ eventId, groupId: undefined })).content).toString();
  const countKept = async (): Promise<number> => {
    const range = { after: positionZero, upTo: endOfBlock(1000), topic: undefined, batchesMax: 1000, bytesMax: 1e9 };
    return (await store.readBatches(defaultGroupId, range)).filter((one) => one.dropped === undefined).length;
  };
  return { engine: started, store, dropped, eventIds, read, countKept };
}

const health = (of: TestEngine) => of.broker.health()[0];

/** Advances the clock, seals a block, and waits until events that are due have been dropped. */
async function passTime(own: TestEngine, durationMs: number): Promise<void> {
  await own.clock.advance(durationMs);
  own.chain.sealEmpty();
  await own.clock.advance(2 * minuteMs);
}

/** The result of an order, which waits for the worker to stop. */
async function settled<Result>(own: TestEngine, order: Promise<Result>): Promise<Result> {
  await own.clock.advance(1_000);
  return order;
}

/** A chain that does not answer. */
const hangs: TestEngine["readCommitted"] = (_, signal) =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve([])));

test("drops the copies of old events, and then reads these events from the chain", async () => {
  const { engine: own, dropped, eventIds, read, countKept } = await startOld();
  await own.clock.advance(retentionMs - minuteMs);
  expect(await countKept()).toBe(count);
  const young = await own.publish(topic, "young");
  await passTime(own, 2 * minuteMs);
  expect(await countKept()).toBe(1);
  expect(dropped).toMatchObject({ batches: count, block: Number(eventIds.at(-1)?.split("-")[2]) });
  expect(dropped.bytes).toBeGreaterThan(count * "event 0".length);
  for (const [index, eventId] of eventIds.entries()) expect(await read(eventId)).toBe(`event ${index}`);
  expect(await read(young)).toBe("young");
  const id = await own.subscribe(topic, { offset: "OFFSET_FIRST" });
  await own.clock.advance(1_000);
  const received = own.sink.attempts.filter(({ subscription }) => subscription.id === id);
  expect(received.map(({ eventId }) => eventId)).toEqual([...eventIds, young]);
  expect(health(own)).toMatchObject({ ready: true, warning: undefined });
});

test("keeps every copy without a retention time", async () => {
  const { engine: own, countKept } = await startOld({ retentionMs: 0 });
  await passTime(own, 10 * retentionMs);
  expect(await countKept()).toBe(count);
});

test("keeps events that a reorg may still remove", async () => {
  const { engine: own, countKept, eventIds, read } = await startOld({ confirmations: 0 });
  await passTime(own, 2 * retentionMs);
  expect(await countKept()).toBe(count);
  for (let block = 0; block < 4_100; block += 1) own.chain.sealEmpty();
  await own.clock.advance(2 * minuteMs);
  expect(await countKept()).toBe(0);
  expect(await read(eventIds[0])).toBe("event 0");
});

test("a clock that steps ten years ahead and back drops nothing", async () => {
  const { engine: own, countKept } = await startOld();
  const tenYearsMs = 10 * 365 * 24 * 60 * minuteMs;
  own.clock.step(tenYearsMs);
  await own.clock.advance(4 * minuteMs);
  expect(await countKept()).toBe(count);
  own.clock.step(-tenYearsMs);
  await passTime(own, 4 * minuteMs);
  expect(await countKept()).toBe(count);
  await passTime(own, retentionMs);
  expect(await countKept()).toBe(0);
});

test("a scrub finds no damage in dropped batches, and does not ask the chain for them", async () => {
  const { engine: own, countKept } = await startOld({ limits: { scrubPeriodMs: 3 * retentionMs } });
  await passTime(own, 2 * retentionMs);
  expect(await countKept()).toBe(0);
  own.chain.find = () => {
    throw new Error("the chain was asked");
  };
  const reports: ScrubReport[] = [];
  await own.running.scrub((ended) => void reports.push(ended));
  const [report] = reports;
  expect(report).toMatchObject({ part: "index", checked: count, damaged: 0 });
});

test("drops only the copies before the first event that the chain does not give, and health warns until the chain gives it", async () => {
  const { engine: own, countKept, eventIds, read } = await startOld();
  const { chain } = own;
  const find = chain.find.bind(chain);
  const pruned = Number(eventIds[4]?.split("-")[2]);
  chain.find = (block) => withoutEntries(find(block), block === pruned);
  await passTime(own, 2 * retentionMs);
  expect(await countKept()).toBe(count - 4);
  expect(health(own)?.warning).toMatch(/in spite of storeRetentionMs: .*sequence 5 of topic "orders"/);
  expect(await read(eventIds[4])).toBe("event 4");
  chain.find = find;
  await own.clock.advance(2 * minuteMs);
  expect(await countKept()).toBe(0);
  expect(health(own)?.warning).toBeUndefined();
});

test("if the endpoint has pruned dropped events, a call gets 200209, delivery waits and skips nothing, and a warning names the subscription", async () => {
  const { engine: own, eventIds, read } = await startOld();
  const { chain } = own;
  await passTime(own, 2 * retentionMs);
  const find = chain.find.bind(chain);
  const pruned = Number(eventIds[4]?.split("-")[2]);
  chain.find = (block) => withoutEntries(find(block), block === pruned);
  await expect(read(eventIds[4])).rejects.toMatchObject({ code: 200209, retry: true });
  expect(await read(eventIds[5])).toBe("event 5");
  const id = await own.subscribe(topic, { offset: "OFFSET_FIRST" });
  await own.clock.advance(1_000);
  expect(own.sink.attempts.map(({ eventId }) => eventId)).toEqual(eventIds.slice(0, 4));
  expect(health(own)).toMatchObject({ ready: true, warning: expect.stringContaining(id) });
  expect(health(own)?.warning).toContain("an endpoint that has deleted old logs cannot answer");
  chain.find = find;
  await own.clock.advance(10 * minuteMs);
  expect(own.sink.attempts.map(({ eventId }) => eventId)).toEqual(eventIds);
  expect(health(own)).toMatchObject({ ready: true, warning: undefined });
});

test("delivery waits for no dropped event of a topic that it does not deliver", async () => {
  const { engine: own, eventIds } = await startOld();
  await own.broker.open({ topic: "others/a", groupId: undefined });
  const other = await own.publish("others/a", "other");
  await passTime(own, 2 * retentionMs);
  const pruned = Number(eventIds[4]?.split("-")[2]);
  const asked = new Set<number>();
  own.readCommitted = async (places, signal) => {
    for (const { blockNumber } of places) asked.add(blockNumber);
    const given = await own.readFromLedger(places, signal);
    return given.filter(({ blockNumber }) => blockNumber !== pruned);
  };
  await own.subscribe("others/+", { offset: "OFFSET_FIRST", url: "http://others/" });
  await own.clock.advance(1_000);
  expect([...asked]).toEqual([Number(other.split("-")[2])]);
  const all = await own.subscribe("#", { offset: "OFFSET_FIRST", url: "http://all/" });
  await own.clock.advance(1_000);
  const receivedAt = (url: string) =>
    own.sink.attempts.flatMap(({ subscription, eventId }) => (subscription.url === url ? eventId : []));
  expect(receivedAt("http://others/")).toEqual([other]);
  expect(receivedAt("http://all/")).toEqual(eventIds.slice(0, 4));
  expect(health(own)?.warning).toContain(all);
  own.readCommitted = undefined;
  await own.clock.advance(10 * minuteMs);
  expect(receivedAt("http://all/")).toEqual([...eventIds, other]);
  expect(receivedAt("http://others/")).toEqual([other]);
});

test("while the chain hangs: a call for an old event gets 200205 after 10 s, health warns that old events wait, and new events are delivered", async () => {
  const { engine: own, eventIds, read } = await startOld();
  await passTime(own, 2 * retentionMs);
  const [offset, young] = [await own.publish(topic, "young"), await own.publish(topic, "younger")];
  own.readCommitted = hangs;
  const reading = read(eventIds[0]).catch((error: unknown) => error);
  const old = await Promise.all(Array.from({ length: 6 }, () => own.subscribe(topic, { offset: "OFFSET_FIRST" })));
  const last = await own.subscribe(topic, { offset });
  await own.clock.advance(1_000);
  const received = own.sink.attempts.map(({ subscription, eventId }) => [subscription.id, eventId]);
  expect(received).toEqual([[last, young]]);
  await own.clock.advance(30_000);
  expect(await reading).toMatchObject({ code: 200205, message: expect.stringContaining("no answer within 10 s") });
  expect(health(own)?.ready).toBe(true);
  expect(old.some((id) => health(own)?.warning?.includes(id))).toBe(true);
  own.readCommitted = undefined;
  await own.clock.advance(10 * minuteMs);
  const byOld = own.sink.attempts.filter(({ subscription }) => subscription.id === old[5]);
  expect(byOld.map(({ eventId }) => eventId)).toEqual([...eventIds, offset, young]);
});

test("while calls for old events hang, subscriptions get old events, and calls get the events that were read before", async () => {
  const { engine: own, eventIds, read } = await startOld();
  await passTime(own, 2 * retentionMs);
  expect(await read(eventIds[9])).toBe("event 9");
  const waiting: (() => void)[] = [];
  own.readCommitted = (places, signal) =>
    waiting.length < 2
      ? new Promise((resolve) => {
          waiting.push(() => resolve([]));
          signal.addEventListener("abort", () => resolve([]));
        })
      : own.readFromLedger(places, signal);
  const reading = Promise.allSettled(eventIds.slice(0, 8).map((eventId) => read(eventId)));
  await own.clock.settle();
  expect(waiting).toHaveLength(2);
  expect(await read(eventIds[9])).toBe("event 9");
  await own.subscribe(topic, { offset: "OFFSET_FIRST" });
  await own.clock.advance(1_000);
  expect(own.sink.attempts.map(({ eventId }) => eventId)).toEqual(eventIds);
  for (const release of waiting) release();
  await reading;
});

test("while the chain hangs, operators can skip, replay, and see blocks and waiting times, and clients can subscribe from an old event", async () => {
  const { engine: own, eventIds } = await startOld();
  await passTime(own, 2 * retentionMs);
  own.readCommitted = hangs;
  const { operator } = own.broker;
  const id = await own.subscribe(topic, { offset: eventIds[2] });
  const skip = (to?: { readonly sequence: number }) =>
    operator.orderSubscription(testCaller, id, { order: { kind: "skip", to }, isDryRun: false });
  expect(await settled(own, skip())).toEqual({ id, events: 1 });
  expect(await settled(own, skip({ sequence: 6 }))).toEqual({ id, events: 2 });
  const from = eventIds[1] ?? "";
  const replay = operator.orderSubscription(testCaller, id, { order: { kind: "replay", from }, isDryRun: false });
  expect(await settled(own, replay)).toEqual({ id, events: 5 });
  expect((await operator.getSubscription(testCaller, id)).waitingSince).toBeGreaterThan(0);
  const { items } = await operator.listBlocks(testCaller, undefined, { after: undefined, limit: 50 });
  expect(items.map(({ batches }) => batches[0]?.firstEventId)).toEqual(eventIds.toReversed());
  expect(items.every(({ batches }) => batches.every(({ batch }) => batch.dropped !== undefined))).toBe(true);
});

test("while the chain is slow, a page of old events ends early, and the next continues", async () => {
  const { engine: own, eventIds } = await startOld();
  await passTime(own, 2 * retentionMs);
  own.readCommitted = async (places, signal) => {
    await new Promise<void>((resolve) => own.clock.after(4_000, resolve));
    return own.readFromLedger(places, signal);
  };
  const seen: string[] = [];
  for (let before: EventBound | undefined, pages = 0; pages < 4; pages += 1) {
    const page = own.broker.operator.listEvents(testCaller, { topic, groupId: undefined, before, limit: 50 });
    await own.clock.advance(20_000);
    const { items, next } = await page;
    seen.push(...items.map(({ eventId }) => eventId));
    before = { sequence: Number(next) };
    if (next === undefined) break;
  }
  expect(seen).toEqual(eventIds.toReversed());
});

test("a stop does not wait for a chain that hangs during a comparison", async () => {
  const { engine: own } = await startOld();
  const asked: unknown[] = [];
  own.readCommitted = (places, signal) => {
    asked.push(places);
    return hangs(places, signal);
  };
  await own.clock.advance(2 * retentionMs);
  own.chain.sealEmpty();
  while (asked.length === 0) await own.clock.advance(1_000);
  await own.stop();
  engine = undefined;
});

test("if the endpoint has pruned the event of a publish key, a repeat gets 200209, which the documents list for publish", async () => {
  const { engine: own } = await startOld();
  const call = keyedCall("k", "text", { topic });
  const { eventId } = await sendKeyed(own, call);
  await passTime(own, 2 * retentionMs);
  const find = own.chain.find.bind(own.chain);
  own.chain.find = (block) => withoutEntries(find(block), block === Number(eventId.split("-")[2]));
  await expect(sendKeyed(own, call)).rejects.toEqual(refusal("eventUnavailable"));
  expect(operations.publish.errors).toContain("eventUnavailable");
  own.chain.find = find;
  expect(await sendKeyed(own, call)).toMatchObject({ eventId });
});

test("refuses events of the chain that differ from the indexed ones", async () => {
  const { engine: own, eventIds, read } = await startOld();
  const { chain } = own;
  await passTime(own, 2 * retentionMs);
  const find = chain.find.bind(chain);
  const [first, second] = eventIds.map((eventId) => Number(eventId.split("-")[2]));
  const other = find(second ?? 0)?.entries.find(({ kind }) => kind === "events-committed");
  chain.find = (number) => {
    const block = find(number);
    if (block === undefined || number !== first || other?.kind !== "events-committed") return block;
    const { events } = other;
    return { ...block, entries: block.entries.map((one) => (one.kind === other.kind ? { ...one, events } : one)) };
  };
  await expect(read(eventIds[0])).rejects.toMatchObject({ code: 200209 });
  chain.find = find;
  expect(await read(eventIds[0])).toBe("event 0");
});

function withoutEntries(block: ReturnType<MemoryChain["find"]>, isPruned: boolean): ReturnType<MemoryChain["find"]> {
  return block && isPruned ? { ...block, entries: [] } : block;
}
