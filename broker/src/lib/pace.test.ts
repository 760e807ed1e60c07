import { expect, it } from "vitest";
import { VirtualClock } from "../ports/testing/virtual-clock.ts";
import { Cancellation } from "./cancellation.ts";
import { Pace } from "./pace.ts";

it("at 10 a second, lets 10 callers pass at once, and then 10 more each second, in order", async () => {
  const clock = new VirtualClock();
  const pace = new Pace(10, clock);
  const passed: number[] = [];
  for (let index = 0; index < 40; index += 1) {
    const wait = pace.pass(new Cancellation());
    if (wait === undefined) passed.push(index);
    else void wait.then(() => passed.push(index));
  }
  expect(passed).toHaveLength(10);
  for (let second = 1; second <= 3; second += 1) {
    await clock.advance(1_010);
    expect(passed.length).toBeGreaterThanOrEqual(10 + 10 * second);
    expect(passed.length).toBeLessThanOrEqual(11 + 10 * second);
  }
  expect(passed).toEqual(passed.toSorted((left, right) => left - right));
});

it("forgets callers that stop waiting, and does not count them", async () => {
  const clock = new VirtualClock();
  const pace = new Pace(1, clock);
  const stopping = new Cancellation();
  expect(pace.pass(stopping)).toBeUndefined();
  const waits = Array.from({ length: 1_000 }, () => Promise.resolve(pace.pass(stopping)));
  stopping.abort();
  await Promise.all(waits);
  let isPassed = false;
  void pace.pass(new Cancellation())?.then(() => (isPassed = true));
  await clock.advance(1_100);
  expect(isPassed).toBe(true);
  await clock.advance(1_100);
  expect(pace.isIdle).toBe(true);
  expect(clock.timers).toBe(0);
});
