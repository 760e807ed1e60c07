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
