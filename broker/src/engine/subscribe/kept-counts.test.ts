import { beforeEach, expect, it } from "vitest";
import { createDeferred } from "../../lib/deferred.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { KeptCounts } from "./kept-counts.ts";

const max = 5;
const secondMs = 1000;
let stored: number;
let reads: number;
let clock: VirtualClock;
let counts: KeptCounts;

beforeEach(() => {
  [stored, reads] = [2, 0];
  clock = new VirtualClock();
  counts = new KeptCounts(async () => {
    reads += 1;
    return stored;
  }, clock);
});

const add = async (isMade = true): Promise<boolean> => {
  const addition = await counts.add("a", max);
  addition?.settle(isMade);
  return addition !== undefined;
};

it("concurrent additions share one read and do not exceed the limit", async () => {
  const made = await Promise.all(Array.from({ length: 9 }, () => add()));
  expect(made.filter(Boolean)).toHaveLength(max - stored);
  expect(reads).toBe(1);
});

it("after a failed addition, and after a removal, allows another addition", async () => {
  stored = max - 1;
  expect(await add(false)).toBe(true);
  expect(await add()).toBe(true);
  expect(await add()).toBe(false);
  counts.removed("a");
  expect(await add()).toBe(true);
  expect(reads).toBe(1);
});

it("reads the count again after a second, and still counts additions in progress", async () => {
  const inProgress = await counts.add("a", max);
  await clock.advance(secondMs);
  stored = max - 2;
  expect(await add()).toBe(true);
  expect(await add()).toBe(false);
  inProgress?.settle(false);
  expect(await add()).toBe(true);
  expect(reads).toBe(2);
});

it("a failed read rejects only the callers that wait for it", async () => {
  const reading = createDeferred<number>();
  counts = new KeptCounts(() => (reads++ === 0 ? reading.promise : Promise.resolve(0)), clock);
  const both = Promise.allSettled([add(), add()]);
  reading.reject(new Error("away"));
  expect((await both).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await add()).toBe(true);
  expect(reads).toBe(2);
});
