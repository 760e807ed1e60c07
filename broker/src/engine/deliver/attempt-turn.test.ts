import { afterEach, beforeEach, expect, it } from "vitest";
import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import { KeyedSlots } from "../../lib/keyed-slots.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { TestEngine } from "../testing/test-engine.ts";

const subscriptions = 12;
const events = 5;

let engine: TestEngine;
/** While it is set, each read of batches waits for it. */
let hanging: Deferred<void> | undefined;
beforeEach(async () => {
  const store = createMemoryStore();
  const readBatches = store.readBatches.bind(store);
  store.readBatches = async (...place) => {
    await hanging?.promise;
    return readBatches(...place);
  };
  hanging = undefined;
  // Room for the batches of about six subscriptions that are behind. Only the last read is cached.
  engine = await TestEngine.start({ store, limits: { heldBytesMax: 6_000, recentBytesMax: 0 } });
});
afterEach(() => {
  hanging?.resolve();
  return engine.stop();
});

it("each event needs one turn, although the batches of the waiting subscriptions do not fit in memory together", async () => {
  const turns = limitTurns(2 * subscriptions * events);
  await fallBehind();
  await engine.clock.advance(100 * subscriptions * events);
  expect(engine.sink.attempts).toHaveLength(subscriptions * events);
  expect(turns.count).toBe(subscriptions * events);
});

it("subscriptions that are behind keep their receiver from no other while a read of the store hangs", async () => {
  const { broker, sink, clock } = engine;
  sink.slots = new KeyedSlots(2);
  await fallBehind();
  await broker.open({ topic: "b", groupId: undefined });
  const live = await engine.subscribe("b", { url: "http://receiver/live" });
  hanging = createDeferred<void>();
  for (let event = 0; event < events; event += 1) await engine.publish("b", "live");
  await clock.advance(3_000);
  expect(sink.sequencesOf(live)).toHaveLength(events);
  expect(sink.attempts.length).toBeLessThan(subscriptions * events);
  hanging.resolve();
  await clock.advance(100 * subscriptions * events);
  expect(sink.attempts).toHaveLength(events + subscriptions * events);
});

/** Subscribes to the old events of topics, at a receiver that takes 100 ms for each event. */
async function fallBehind(): Promise<void> {
  const { broker, sink, clock } = engine;
  for (let index = 0; index < subscriptions; index += 1) {
    const [topic, url] = [`a/${index}`, `http://receiver/${index}`];
    await broker.open({ topic, groupId: undefined });
    for (let event = 0; event < events; event += 1) await engine.publish(topic, "x".repeat(500));
    sink.receive(url, () => new Promise((resolve) => void clock.after(100, () => resolve({ status: "accepted" }))));
  }
  for (let index = 0; index < subscriptions; index += 1)
    await engine.subscribe(`a/${index}`, { url: `http://receiver/${index}`, offset: "OFFSET_FIRST" });
}

/** Lets two attempts at a receiver run at once, and counts the turns. Gives at most `turnsMax` turns, so that workers that waste theirs do not run forever. */
function limitTurns(turnsMax: number): { readonly count: number } {
  const { sink } = engine;
  const enter = sink.enter.bind(sink);
  const turns = { count: 0 };
  sink.slots = new KeyedSlots(2);
  sink.enter = (target, signal) => {
    turns.count += 1;
    if (turns.count > turnsMax) sink.slots = new KeyedSlots(0);
    return enter(target, signal);
  };
  return turns;
}
