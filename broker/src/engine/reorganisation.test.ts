import { encodeEvents, type ErrorName, errorCatalogue } from "@stele/wire";
import { afterEach, expect, it } from "vitest";
import { defaultGroupId } from "../domain/group-id.ts";
import { parseTopicName } from "../domain/topic-name.ts";
import { noMetrics } from "../ports/metrics.ts";
import type { AttemptOutcome } from "../ports/sink.ts";
import { createDeferred } from "../lib/deferred.ts";
import { untilAborted } from "../lib/until-aborted.ts";
import { testCaller } from "./testing/as-caller.ts";
import { TestEngine, type TestEngineOptions } from "./testing/test-engine.ts";

let engine: TestEngine;
afterEach(() => engine.stop());

const refusal = (name: ErrorName): unknown => expect.objectContaining({ code: errorCatalogue[name].code });
const topic = (name: string) => ({ topic: name, groupId: undefined });

/** A broker with one topic, and a subscription to everything. */
async function start(options: TestEngineOptions = {}): Promise<string> {
  engine = await TestEngine.start({ confirmations: 0, ...options });
  await engine.broker.open(topic("a"));
  return engine.subscribe("#", { offset: "OFFSET_FIRST" });
}

it("getEvent of an event that a reorg removed fails with a message that names the reorg", async () => {
  await start();
  const kept = await engine.publish("a", "1");
  const gone = await engine.publish("a", "2");
  await engine.clock.settle();
  engine.chain.cutBack(engine.chain.head - 1);
  await engine.clock.settle();
  expect((await engine.broker.getEvent({ eventId: kept, groupId: undefined })).sequence).toBe(1);
  await expect(engine.broker.getEvent({ eventId: gone, groupId: undefined })).rejects.toMatchObject({
    code: 100303,
    message: expect.stringContaining("was taken back by a reorganisation of the chain"),
  });
  expect(await engine.broker.state(topic("a"))).toMatchObject({ sequence: 1 });
});

it("rolls back to the block that the ledger names, without asking the chain for hashes", async () => {
  await start();
  for (const text of ["1", "2", "3"]) await engine.publish("a", text);
  await engine.clock.settle();
  const askedBefore = engine.hashesAsked.length;
  engine.chain.cutBack(engine.chain.head - 2);
  engine.chain.sealEmpty();
  await engine.publish("a", "other");
  await engine.clock.settle();
  expect(await engine.broker.state(topic("a"))).toMatchObject({ sequence: 2 });
  expect(engine.hashesAsked.slice(askedBefore)).toEqual([]);
});

it("an event that a reorg moves to another block is delivered again with a new identifier, and the counts are right", async () => {
  const id = await start();
  for (const text of ["1", "2", "3"]) await engine.publish("a", text);
  await engine.clock.settle();
  expect(engine.sink.sequencesOf(id)).toEqual([1, 2, 3]);
  engine.chain.cutBack(engine.chain.head - 2);
  engine.chain.sealEmpty();
  await engine.publish("a", "2");
  await engine.publish("a", "other");
  await engine.clock.settle();
  expect(engine.sink.sequencesOf(id)).toEqual([1, 2, 3, 2, 3]);
  const ids = engine.sink.attempts.map(({ eventId }) => eventId);
  expect(new Set(ids).size).toBe(5);
  const [status] = await engine.listSubscriptions();
  expect(status).toMatchObject({ notifiedCount: 3, notifyingCount: 0 });
});

it("an event that vanishes during its attempt is neither acknowledged nor retried", async () => {
  const id = await start();
  const answer = createDeferred<AttemptOutcome>();
  engine.sink.receive("http://receiver/", ({ event }) =>
    event.sequence === 1 ? answer.promise : { status: "accepted" },
  );
  await engine.publish("a", "1");
  await engine.publish("a", "2");
  await engine.clock.settle();
  engine.chain.cutBack(engine.chain.head - 2);
  await engine.clock.settle();
  answer.resolve({ status: "failed", reason: "no" });
  await engine.clock.advance(60_000);
  expect(engine.sink.sequencesOf(id)).toEqual([1]);
  expect((await engine.listSubscriptions())[0]).toMatchObject({ notifiedCount: 0, notifyingCount: 0 });
  engine.sink.receive("http://receiver/", () => ({ status: "accepted" }));
  await engine.publish("a", "1 again");
  await engine.clock.settle();
  expect(engine.sink.sequencesOf(id)).toEqual([1, 1]);
  expect((await engine.listSubscriptions())[0]).toMatchObject({ notifiedCount: 1, notifyingCount: 0 });
});

it("an event that vanishes while its attempt waits to be sent is not sent", async () => {
  const id = await start();
  const attempt = engine.sink.attempt.bind(engine.sink);
  const free = createDeferred<void>();
  engine.sink.attempt = async (notification, signal, options) => {
    await untilAborted(free.promise, options?.stopping ?? signal);
    return attempt(notification, signal, options);
  };
  await engine.publish("a", "1");
  await engine.clock.settle();
  engine.chain.cutBack(engine.chain.head - 1);
  await engine.clock.settle();
  const eventId = await engine.publish("a", "1 again");
  free.resolve();
  await engine.clock.settle();
  expect(engine.sink.attempts.map((one) => [one.subscription.id, one.eventId])).toEqual([[id, eventId]]);
});

it("a publish whose block vanishes before it is indexed returns TIMEOUT", async () => {
  engine = await TestEngine.start({ confirmations: 2 });
  const opened = engine.broker.open(topic("a"));
  await engine.clock.settle();
  for (let count = 0; count < 4; count += 1) engine.chain.sealEmpty();
  await opened;
  const answer = engine.publish("a", "1");
  await engine.clock.settle();
  engine.chain.cutBack(1);
  await engine.clock.settle();
  for (let count = 0; count < 9; count += 1) engine.chain.sealEmpty();
  await engine.clock.settle();
  await engine.clock.advance(1_000);
  expect(await answer).toBe("TIMEOUT");
});

it("a reorg within the finality setting has no effect", async () => {
  const seen: unknown[] = [];
  const metrics = { ...noMetrics, reorganised: (...all: unknown[]) => void seen.push(all) };
  engine = await TestEngine.start({ confirmations: 3, metrics });
  const opened = engine.broker.open(topic("a"));
  await engine.clock.settle();
  for (let count = 0; count < 3; count += 1) engine.chain.sealEmpty();
  await opened;
  const id = await engine.subscribe("a");
  const address = (await engine.broker.state(topic("a"))).address;
  const publish = (text: string) => engine.chain.publish([batch(address, text)]);
  publish("1");
  publish("2");
  engine.chain.cutBack(engine.chain.head - 2);
  publish("other");
  for (let count = 0; count < 3; count += 1) engine.chain.sealEmpty();
  engine.chain.cutBack(engine.chain.head - 3);
  for (let count = 0; count < 3; count += 1) engine.chain.sealEmpty();
  await engine.clock.settle();
  expect(engine.sink.attempts.map(({ event }) => Buffer.from(event.content).toString())).toEqual(["other"]);
  expect(engine.sink.sequencesOf(id)).toEqual([1]);
  expect(seen).toEqual([]);
});

it("rolls back at start the blocks that the chain removed while the broker was down", async () => {
  const id = await start();
  for (const text of ["1", "2", "3"]) await engine.publish("a", text);
  await engine.clock.advance(100);
  await engine.rebuild();
  const { head } = engine.chain;
  engine.chain.cutBack(head - 2);
  for (let count = 0; count < 5; count += 1) engine.chain.sealEmpty();
  await engine.broker.start();
  const { items } = await engine.broker.operator.listGroups(testCaller, { after: undefined, limit: 1 });
  expect(items).toMatchObject([{ rollBackHistory: [{ fromBlock: head, toBlock: head - 2, events: 2 }] }]);
  await engine.publish("a", "other");
  await engine.clock.settle();
  expect(engine.sink.sequencesOf(id)).toEqual([1, 2, 3, 2]);
  expect((await engine.listSubscriptions())[0]).toMatchObject({ notifiedCount: 2, notifyingCount: 0 });
});

it("rolls nothing back if the final blocks of the chain end before the index does", async () => {
  const id = await start();
  for (const text of ["1", "2", "3"]) await engine.publish("a", text);
  await engine.clock.advance(100);
  const { head } = engine.chain;
  await engine.rebuild();
  const behind = await TestEngine.start({ confirmations: 2, chain: engine.chain, store: engine.store });
  await behind.clock.settle();
  expect(behind.broker.health()).toMatchObject([{ ready: true, indexedBlock: head }]);
  await behind.stop();
  await engine.broker.start();
  await engine.publish("a", "4");
  await engine.clock.settle();
  expect(engine.sink.sequencesOf(id)).toEqual([1, 2, 3, 4]);
});

it.each([
  ["keeps an index that is ahead of the chain and of blocks that are not final", { cutTo: 6, sealed: 0, kept: 7 }],
  [
    "keeps an index if the chain is shorter and has replaced only blocks that are not final",
    { cutTo: 4, sealed: 2, kept: 7 },
  ],
  ["rolls back at start if the chain is shorter and has replaced final blocks", { cutTo: 2, sealed: 4, kept: 2 }],
])("%s", async (_, { cutTo, sealed, kept }) => {
  engine = await TestEngine.start({ confirmations: 2 });
  for (let count = 0; count < 9; count += 1) {
    engine.chain.sealEmpty();
    await engine.clock.settle();
  }
  expect(engine.broker.health()).toMatchObject([{ indexedBlock: 7 }]);
  await engine.rebuild();
  engine.chain.cutBack(cutTo);
  for (let count = 0; count < sealed; count += 1) engine.chain.sealEmpty();
  await engine.broker.start();
  const { items } = await engine.broker.operator.listGroups(testCaller, { after: undefined, limit: 1 });
  expect(items).toMatchObject([{ rollBackHistory: kept === 7 ? [] : [{ fromBlock: 7, toBlock: kept }] }]);
  expect(engine.broker.health()).toMatchObject([{ ready: true }]);
});

it("a group whose index shares no block with the chain is not ready", async () => {
  await start();
  await engine.clock.advance(100);
  await engine.rebuild();
  const other = new TestEngine({ confirmations: 0, store: engine.store });
  other.chain.cutBack(-1);
  for (let count = 0; count < 9; count += 1) other.chain.sealEmpty();
  const started = other.broker.start();
  await other.clock.advance(60_000);
  await started;
  expect(other.broker.health()).toMatchObject([
    { ready: false, reason: expect.stringMatching(/none of the blocks .* tries again/) },
  ]);
  await other.stop();
  await engine.broker.start();
});

it("subscribe refuses the offset of a removed event", async () => {
  await start();
  const gone = await engine.publish("a", "1");
  engine.chain.cutBack(engine.chain.head - 1);
  await engine.clock.settle();
  await expect(engine.subscribe("a", { offset: gone })).rejects.toEqual(refusal("eventNotExist"));
});

it("an event that a reorg moves while the broker stops is delivered once more and counted once", async () => {
  const id = await start();
  engine.sink.receive("http://receiver/", async () => {
    await new Promise<void>((resolve) => void engine.clock.after(40, resolve));
    return { status: "accepted" };
  });
  await engine.publish("a", "1");
  await engine.clock.settle();
  const stopped = engine.rebuild();
  engine.chain.cutBack(engine.chain.head - 1);
  engine.chain.sealEmpty();
  const { address } = await engine.store.findTopic(defaultGroupId, parseTopicName("a")).then(assertDefined);
  engine.chain.publish([batch(address, "1")]);
  await stopped;
  await engine.broker.start();
  await engine.clock.advance(1_000);
  expect(engine.sink.sequencesOf(id)).toEqual([1, 1]);
  expect((await engine.listSubscriptions())[0]).toMatchObject({ notifiedCount: 1, notifyingCount: 0 });
});

it("after a reorg while cursors are read at start, the events of the new branch are delivered", async () => {
  const id = await start();
  await engine.publish("a", "1");
  await engine.publish("a", "2");
  await engine.clock.advance(100);
  await engine.rebuild();
  const { store, chain } = engine;
  const list = store.listSubscriptions.bind(store);
  let calls = 0;
  store.listSubscriptions = async () => {
    const found = await list();
    calls += 1;
    if (calls !== 1) return found;
    chain.cutBack(chain.head - 2);
    const address = (await store.findTopic(defaultGroupId, parseTopicName("a")).then(assertDefined)).address;
    chain.publish([batch(address, "other"), batch(address, "another")]);
    chain.sealEmpty();
    for (let turn = 0; turn < 1_000; turn += 1) await Promise.resolve();
    return found;
  };
  await engine.broker.start();
  await engine.clock.advance(1_000);
  expect(engine.sink.attempts.map(({ event }) => Buffer.from(event.content).toString())).toEqual([
    "1",
    "2",
    "other",
    "another",
  ]);
  expect(engine.sink.sequencesOf(id)).toEqual([1, 2, 1, 2]);
  expect((await engine.listSubscriptions())[0]).toMatchObject({ notifiedCount: 2, notifyingCount: 0 });
});

function batch(address: `0x${string}`, text: string) {
  const events = encodeEvents([{ content: Buffer.from(text), extensions: [] }]);
  return { address, count: 1, events };
}

function assertDefined<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the value is undefined");
  return value;
}
