import { afterAll, beforeAll, expect, it } from "vitest";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine } from "../testing/test-engine.ts";
import type { EventBound } from "./calls.ts";

let engine: TestEngine;
/** Time of each event's block; index 0 is for sequence 1. */
const times: number[] = [];

beforeAll(async () => {
  engine = await TestEngine.start();
  for (const topic of ["a", "other"]) await engine.broker.open({ topic, groupId: undefined });
  for (let index = 0; index < 5; index += 1) {
    await engine.clock.advance(10_000);
    times.push(engine.clock.now());
    await engine.publishMany("a", 1);
    await engine.publishMany("other", 1);
  }
});
afterAll(() => engine.stop());

async function list(range: { from?: EventBound; before?: EventBound }, limit = 50): Promise<readonly number[][]> {
  const pages: number[][] = [];
  for (let { from, before } = range, isMore = true; isMore; ) {
    const call = { topic: "a", groupId: undefined, from, before, limit };
    const { items, next } = await engine.broker.operator.listEvents(testCaller, call);
    pages.push(items.map(({ sequence }) => sequence));
    [before, isMore] = [{ sequence: Number(next) }, next !== undefined];
  }
  return pages;
}

const timeOf = (sequence: number): number => times[sequence - 1] ?? 0;

it.each<[string, () => { from?: EventBound; before?: EventBound }, readonly number[]]>([
  ["from a sequence on", () => ({ from: { sequence: 3 } }), [5, 4, 3]],
  ["before a sequence", () => ({ before: { sequence: 3 } }), [2, 1]],
  ["from a sequence to another", () => ({ from: { sequence: 2 }, before: { sequence: 4 } }), [3, 2]],
  ["from a time on", () => ({ from: { time: timeOf(4) } }), [5, 4]],
  ["just after a time", () => ({ from: { time: timeOf(4) + 1 } }), [5]],
  ["before a time", () => ({ before: { time: timeOf(2) } }), [1]],
  ["from a time to another", () => ({ from: { time: timeOf(2) }, before: { time: timeOf(4) } }), [3, 2]],
  ["from a time on, before a sequence", () => ({ from: { time: timeOf(2) }, before: { sequence: 3 } }), [2]],
  ["from a future time", () => ({ from: { time: timeOf(5) + 60_000 } }), []],
  ["before the first event", () => ({ before: { time: 0 } }), []],
  ["from a sequence to the same sequence", () => ({ from: { sequence: 4 }, before: { sequence: 4 } }), []],
])("lists the events of a topic %s", async (_name, rangeOf, sequences) => {
  expect((await list(rangeOf())).flat()).toEqual(sequences);
});

it("lists a range page by page, from its newest event to its oldest", async () => {
  const pages = await list({ from: { time: timeOf(2) }, before: { time: timeOf(5) } }, 2);
  expect(pages).toEqual([[4, 3], [2]]);
});
