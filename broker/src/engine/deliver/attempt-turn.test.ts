import { afterEach, beforeEach, expect, it } from "vitest";
import { KeyedSlots } from "../../lib/keyed-slots.ts";
import { TestEngine } from "../testing/test-engine.ts";

const subscriptions = 12;
const events = 5;

let engine: TestEngine;
beforeEach(async () => {
  // Room for the batches of about six subscriptions that are behind.
  engine = await TestEngine.start({ limits: { heldBytesMax: 6_000 } });
});
afterEach(() => engine.stop());

it("each event needs one turn, although the batches of the waiting subscriptions do not fit in memory together", async () => {
  const { broker, sink, clock } = engine;
  await broker.open({ topic: "a", groupId: undefined });
  for (let event = 0; event < events; event += 1) await engine.publish("a", "x".repeat(500));
  const turns = limitTurns(2 * subscriptions * events);
  for (let index = 0; index < subscriptions; index += 1) {
    const url = `http://receiver/${index}`;
    sink.receive(url, () => new Promise((resolve) => void clock.after(100, () => resolve({ status: "accepted" }))));
    await engine.subscribe("a", { url, offset: "OFFSET_FIRST" });
  }
  await clock.advance(100 * subscriptions * events);
  expect(sink.attempts).toHaveLength(subscriptions * events);
  expect(turns.count).toBe(subscriptions * events);
});

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
