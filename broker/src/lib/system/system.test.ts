import { afterEach, expect, test, vi } from "vitest";
import { createSystemClock } from "./clock.ts";
import { createSystemRandomness } from "./randomness.ts";

afterEach(() => {
  vi.useRealTimers();
});

test("now() returns the machine's time", () => {
  const before = Date.now();
  const now = createSystemClock().now();
  expect(now).toBeGreaterThanOrEqual(before);
  expect(now).toBeLessThanOrEqual(Date.now());
});

test("after() fires once, and never after a cancel", () => {
  vi.useFakeTimers();
  const calls: string[] = [];
  const clock = createSystemClock();
  clock.after(100, () => calls.push("kept"));
  const cancel = clock.after(100, () => calls.push("cancelled"));
  vi.advanceTimersByTime(99);
  expect(calls).toEqual([]);
  cancel();
  vi.advanceTimersByTime(1000);
  expect(calls).toEqual(["kept"]);
});

test("after() supports delays beyond the limit of one timer", () => {
  vi.useFakeTimers();
  const calls: string[] = [];
  const delayMs = 2 ** 31 + 1000;
  createSystemClock().after(delayMs, () => calls.push("kept"));
  const cancel = createSystemClock().after(delayMs, () => calls.push("cancelled"));
  vi.advanceTimersByTime(delayMs - 1);
  expect(calls).toEqual([]);
  cancel();
  vi.advanceTimersByTime(1);
  expect(calls).toEqual(["kept"]);
});

test("soon() calls once, after the current task", async () => {
  const calls: string[] = [];
  const called = new Promise<void>((resolve) => {
    createSystemClock().soon(() => {
      calls.push("soon");
      resolve();
    });
  });
  calls.push("now");
  await called;
  expect(calls).toEqual(["now", "soon"]);
});

test("randomness is in range and of the documented form", () => {
  const randomness = createSystemRandomness();
  for (let round = 0; round < 100; round += 1) {
    expect(randomness.fraction()).toBeGreaterThanOrEqual(0);
    expect(randomness.fraction()).toBeLessThan(1);
    expect(randomness.uuid()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
});
