import { expect, it } from "vitest";
import { createMonotonic } from "./clock.ts";

/** A clock whose two sources the test moves. */
function setUp() {
  const at = { timer: 100, day: 1_700_000_000_000 };
  const monotonic = createMonotonic(
    () => at.timer,
    () => at.day,
  );
  const elapse = (timerMs: number, dayMs = timerMs): number => {
    at.timer += timerMs;
    at.day += dayMs;
    return monotonic();
  };
  return { elapse };
}

it("monotonic time follows the timers while the machine is awake", () => {
  const { elapse } = setUp();
  expect([elapse(5), elapse(0), elapse(1_000)]).toEqual([105, 105, 1_105]);
});

it("monotonic time advances while the machine sleeps, also in repeated sleeps", () => {
  const { elapse } = setUp();
  expect([elapse(10, 60_010), elapse(5), elapse(1, 30_001)]).toEqual([60_110, 60_115, 90_116]);
});

it("monotonic time never decreases, and ignores small or backward corrections of the wall clock", () => {
  const { elapse } = setUp();
  expect([elapse(10, -3_600_000), elapse(10), elapse(10, 400), elapse(10, -390)]).toEqual([110, 120, 130, 140]);
});
