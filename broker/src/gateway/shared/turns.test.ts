import { afterEach, expect, test, vi } from "vitest";
import { turnTimeoutMs } from "../limits.ts";
import { type Leave, Turns } from "./turns.ts";

afterEach(() => void vi.useRealTimers());

const nextLoop = (): Promise<void> => new Promise(setImmediate);

/** Calls that each last until the test ends them. */
function createCalls(turns: Turns) {
  const entered: string[] = [];
  const leaves: Leave[] = [];
  const enter = async (caller: object, name: string): Promise<void> => {
    const leave = await turns.enter(caller);
    entered.push(name);
    if (leave !== undefined) leaves.push(leave);
  };
  return { entered, enter, leaveOne: () => leaves.shift()?.() };
}

test("admits calls up to the limit, and waiting callers in turn, however many calls each has", async () => {
  const [greedy, modest] = [{}, {}];
  const { entered, enter, leaveOne } = createCalls(new Turns(2));
  const calls = ["g1", "g2", "g3", "g4", "g5"].map((name) => enter(greedy, name));
  calls.push(enter(modest, "m1"));
  await nextLoop();
  expect(entered).toEqual(["g1", "g2"]);
  for (let left = 0; left < 4; left += 1) {
    leaveOne();
    await nextLoop();
  }
  expect(entered).toEqual(["g1", "g2", "g3", "m1", "g4", "g5"]);
  await Promise.all(calls);
});

test("refuses a call after the timeout even if no running call ends, and admits the next call", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const turns = new Turns(1);
  const leave = await turns.enter({});
  const early = turns.enter({});
  vi.advanceTimersByTime(1);
  const late = turns.enter({});
  vi.advanceTimersByTime(turnTimeoutMs - 1);
  expect(await early).toBeUndefined();
  leave?.();
  expect(await late).toBeTypeOf("function");
  expect(vi.getTimerCount()).toBe(0);
});

test("yields to the event loop between long calls", async () => {
  const turns = new Turns(1);
  let loops = 0;
  const done = new AbortController();
  const count = async (): Promise<void> => {
    for (; !done.signal.aborted; loops += 1) await nextLoop();
  };
  const counting = count();
  const work = async (): Promise<void> => {
    const leave = await turns.enter({});
    for (const began = performance.now(); performance.now() - began < 6; );
    leave?.();
  };
  await Promise.all(Array.from({ length: 10 }, work));
  done.abort();
  await counting;
  expect(loops).toBeGreaterThanOrEqual(8);
});
