import { afterEach, beforeEach, expect, it } from "vitest";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine } from "../testing/test-engine.ts";

const page = { after: undefined, limit: 50 };

let engine: TestEngine;
beforeEach(async () => {
  engine = await TestEngine.start();
  for (const topic of ["a", "b/c"]) await engine.broker.open({ topic, groupId: undefined });
});
afterEach(() => engine.stop());

const get = (topic: string) => engine.broker.operator.getTopic(testCaller, topic, undefined);

async function matching(topic: string, limit = 50): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let after: string | undefined, isMore = true; isMore; isMore = after !== undefined) {
    const call = { matches: topic };
    const found = await engine.broker.operator.searchSubscriptions(testCaller, call, { after, limit });
    ids.push(...found.items.map(({ subscription }) => subscription.id));
    after = found.next;
  }
  return ids;
}

it("a topic without events has size 0 and no last event", async () => {
  const size = { bytes: 0, batches: 0, isCut: false };
  expect(await get("a")).toMatchObject({ events: 0, size, lastEventAt: undefined, writers: { kind: "everyone" } });
});

it("shows bytes, batches, the time of the last event and the events of the last five minutes", async () => {
  await engine.publishMany("a", 3);
  await engine.clock.advance(240_000);
  await engine.publishMany("a", 2);
  await engine.publishMany("b/c", 1);
  const at = engine.clock.now();
  await engine.clock.advance(30_000);
  const bytes = engine.chain
    .read(0, 100)
    .flatMap(({ entries }) => entries.flatMap((entry) => ("events" in entry ? [entry] : [])));
  const ofTopic = bytes.slice(0, 5).reduce((sum, { events }) => sum + events.length, 0);
  const whole = { size: { bytes: ofTopic, batches: 5, isCut: false }, lastEventAt: at };
  expect(await get("a")).toMatchObject({ ...whole, rate: { events: 5, ms: 300_000 } });
  await engine.clock.advance(60_000);
  expect(await get("a")).toMatchObject({ ...whole, rate: { events: 2, ms: 300_000 } });
  expect(await get("b/c")).toMatchObject({ events: 1, rate: { events: 1 } });
  await engine.clock.advance(300_000);
  expect(await get("a")).toMatchObject({ ...whole, rate: { events: 0 } });
});

it("asks the chain once in ten seconds, and answers what the index knows while the chain is down", async () => {
  await engine.publishMany("a", 1);
  let asked = 0;
  engine.readBlock = async () => {
    asked += 1;
    throw new Error("the chain is down");
  };
  const first = await get("a");
  expect(first).toMatchObject({ events: 1, rate: undefined, lastEventAt: undefined, writers: { kind: "everyone" } });
  const before = asked;
  for (let calls = 0; calls < 5; calls += 1) await get("a");
  expect([before > 0, asked]).toEqual([true, before]);
  engine.readBlock = undefined;
  await engine.clock.advance(10_000);
  expect(await get("a")).toMatchObject({ rate: { events: 1 }, lastEventAt: expect.any(Number) });
});

it("finds the subscriptions that receive the events of a topic, by name and by pattern, page by page", async () => {
  const ids = [];
  for (const filter of ["a", "b/#", "#", "b/+", "+"]) ids.push(await engine.subscribe(filter));
  const [name, deep, all, one, flat] = ids;
  expect(await matching("a")).toEqual([name, all, flat]);
  expect(await matching("b/c", 1)).toEqual([deep, all, one]);
  expect(await get("b/c")).toMatchObject({ subscriptions: 3 });
  const { operator } = engine.broker;
  const both = await operator.searchSubscriptions(testCaller, { matches: "b/c", topic: "#" }, page);
  expect(both.items.map(({ subscription }) => subscription.id)).toEqual([all]);
  await expect(operator.searchSubscriptions(testCaller, { matches: "b/#" }, page)).rejects.toThrow();
});
