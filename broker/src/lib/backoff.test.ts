import { describe, expect, it } from "vitest";
import { backoffDelayMs } from "./backoff.ts";

const limits = { delayMsMin: 1_000, delayMsMax: 300_000 };

describe("backoffDelayMs", () => {
  it.each([
    [1, 0, 1_000],
    [1, 0.5, 1_500],
    [2, 0, 2_000],
    [3, 0.25, 5_000],
    [9, 0, 256_000],
    [9, 0.5, 300_000],
    [10, 0, 300_000],
    [1_000_000, 0.999, 300_000],
  ])("after failure %d with random fraction %d the delay is %d ms", (attempt, fraction, expected) => {
    expect(backoffDelayMs(attempt, { ...limits, fraction })).toBe(expected);
  });
});
