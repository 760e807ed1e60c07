import { expect, it } from "vitest";
import { ForwardClock } from "./forward-clock.ts";

it("follows the wall clock forward, and runs on when the wall clock is set back", () => {
  const sources = { day: 1_000, timer: 7, now: () => sources.day, monotonic: () => sources.timer };
  const clock = new ForwardClock(sources);
  expect(clock.now()).toBe(1_000);
  sources.day += 500;
  expect(clock.now()).toBe(1_500);
  sources.day = 0;
  sources.timer += 20;
  expect(clock.now()).toBe(1_520);
  sources.day = 1_600;
  expect(clock.now()).toBe(1_600);
});

it("follows a wall clock that jumps forward by more than an hour only once it has stayed ahead for ten minutes", () => {
  const sources = { day: 1_000, timer: 7, now: () => sources.day, monotonic: () => sources.timer };
  const clock = new ForwardClock(sources);
  const pass = (ms: number): number => {
    sources.day += ms;
    sources.timer += ms;
    return clock.now();
  };
  const tenYearsMs = 10 * 365 * 24 * 3_600_000;
  sources.day += tenYearsMs;
  expect(pass(0)).toBe(1_000);
  expect(pass(599_000)).toBe(600_000);
  sources.day -= tenYearsMs;
  expect(pass(1_000)).toBe(601_000);
  sources.day += tenYearsMs;
  expect(pass(0)).toBe(601_000);
  expect(pass(600_000)).toBe(1_201_000 + tenYearsMs);
});
