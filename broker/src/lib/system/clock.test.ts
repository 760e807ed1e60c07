import { expect, it } from "vitest";
import { createMonotonic } from "./clock.ts";

/** A clock whose sources the test moves. Only the timers stop while the machine sleeps. */
function setUp() {
  const at = { timer: 100, day: 1_700_000_000_000, uptime: 5_000 };
  const monotonic = createMonotonic({ timer: () => at.timer, day: () => at.day, uptime: () => at.uptime });
  const elapse = (timerMs: number, { sleptMs = 0, setMs = 0 } = {}): number => {
    at.timer += timerMs;
    at.day += timerMs + sleptMs + setMs;
    at.uptime += timerMs + sleptMs;
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
  const times = [elapse(10, { sleptMs: 60_000 }), elapse(5), elapse(1, { sleptMs: 30_000 })];
  expect(times).toEqual([60_110, 60_115, 90_116]);
});

const hour = 3_600_000;
it.each([-6 * hour, -390, 400, 3 * hour, 87_600 * hour])(
  "monotonic time follows the timers when the wall clock is set by %i ms",
  (setMs) => {
    const { elapse } = setUp();
    expect([elapse(10, { setMs }), elapse(10), elapse(10, { setMs: -setMs }), elapse(10)]).toEqual([
      110, 120, 130, 140,
    ]);
  },
);

it("monotonic time counts a sleep even if the wall clock is set after it", () => {
  const { elapse } = setUp();
  const times = [elapse(10, { sleptMs: 60_000 }), elapse(10, { setMs: 10 * hour }), elapse(10, { sleptMs: 1_000 })];
  expect(times).toEqual([60_110, 60_120, 61_130]);
});
