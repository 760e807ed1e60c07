import { afterEach, expect, test, vi } from "vitest";
import { anonymous, type Caller, toOwnerId } from "../../engine/access/caller.ts";
import { RuleSet } from "../../engine/access/rule-set.ts";
import { turnTimeoutMs } from "../limits.ts";
import { type Leave, Turns } from "./turns.ts";

afterEach(() => void vi.useRealTimers());

const nextLoop = (): Promise<void> => new Promise(setImmediate);

type TurnCaller = Pick<Caller, "principal">;

/** A connection of a principal; without a name, of somebody without a credential. */
function createCaller(name?: string, tenant?: string): TurnCaller {
  if (name === undefined) return { principal: anonymous };
  const [id, rules] = [toOwnerId(name, tenant), new RuleSet([])];
  return { principal: { kind: "known", id, tenant, rules, expiresAt: undefined, keyId: undefined } };
}

/** Calls that each last until the test ends them. */
function createCalls(turns: Turns) {
  const entered: string[] = [];
  const leaves: Leave[] = [];
  const enter = async (caller: TurnCaller, name: string): Promise<void> => {
    const leave = await turns.enter(caller);
    entered.push(name);
    if (leave !== undefined) leaves.push(leave);
  };
  return { entered, enter, leaveOne: () => leaves.shift()?.() };
}

test("admits calls up to the limit, and waiting callers in turn, however many calls each has", async () => {
  const [greedy, modest] = [createCaller(), createCaller()];
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

test("admits principals in turn, however many connections each has, and the connections of each in turn", async () => {
  const greedy = Array.from({ length: 4 }, () => createCaller("greedy"));
  const { entered, enter, leaveOne } = createCalls(new Turns(1));
  const calls = greedy.flatMap((caller, index) => [enter(caller, `g${index}`), enter(caller, `g${index} again`)]);
  const modest = createCaller("modest");
  calls.push(enter(modest, "m1"), enter(modest, "m2"));
  await nextLoop();
  for (let left = 0; left < 9; left += 1) {
    leaveOne();
    await nextLoop();
  }
  expect(entered.slice(0, 5)).toEqual(["g0", "g0 again", "m1", "g1", "m2"]);
  expect(entered.slice(5)).toEqual(["g2", "g3", "g1 again", "g2 again", "g3 again"]);
  await Promise.all(calls);
});

test("admits tenants in turn, however many principals each has, and the principals of each in turn", async () => {
  const tenant = [0, 1, 2].map((index) => createCaller(`shop${index}`, "acme"));
  const { entered, enter, leaveOne } = createCalls(new Turns(1));
  const calls = tenant.flatMap((caller, index) => [enter(caller, `a${index}`), enter(caller, `a${index} again`)]);
  const others = [createCaller("acme"), createCaller("shop0", "globex")];
  calls.push(...others.map((caller, index) => enter(caller, `other ${index}`)));
  await nextLoop();
  for (let left = 0; left < 7; left += 1) {
    leaveOne();
    await nextLoop();
  }
  expect(entered).toEqual(["a0", "a0 again", "other 0", "other 1", "a1", "a2", "a1 again", "a2 again"]);
  await Promise.all(calls);
});

test("refuses a call after the timeout even if no running call ends, and admits the next call", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const turns = new Turns(1);
  const leave = await turns.enter(createCaller());
  const early = turns.enter(createCaller());
  vi.advanceTimersByTime(1);
  const late = turns.enter(createCaller());
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
    const leave = await turns.enter(createCaller());
    for (const began = performance.now(); performance.now() - began < 6; );
    leave?.();
  };
  await Promise.all(Array.from({ length: 10 }, work));
  done.abort();
  await counting;
  expect(loops).toBeGreaterThanOrEqual(8);
});
