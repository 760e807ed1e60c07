import { SteleError } from "@stele/client";
import { describe, expect, test } from "vitest";
import { askAgain } from "./ask-again.ts";

const away = new SteleError("the broker does not answer", { retry: true });

describe("a query that no interval repeats", () => {
  test.each([
    ["asks again after an outage", away, true],
    ["asks again for an event beyond the head", new SteleError("no", { code: 100304, retry: true }), true],
    ["does not ask again after a refusal", new SteleError("no", { code: 100702, retry: false }), false],
    ["does not ask the chain again for damaged data", new SteleError("no", { code: 200208, retry: true }), false],
    ["does not ask the chain again for a dropped event", new SteleError("no", { code: 200209, retry: true }), false],
    ["does not ask again after an error of the page", new Error("no"), false],
  ])("a query %s", (_, error, isAsked) => {
    expect(askAgain.retry(0, error)).toBe(isAsked);
  });

  test("a query doubles its pause up to 15 s", () => {
    expect([0, 1, 2, 3, 4, 2000].map((failures) => askAgain.retryDelay(failures, away))).toEqual([
      3000, 6000, 12_000, 15_000, 15_000, 15_000,
    ]);
  });

  test("a query waits as long as the broker asks for, up to five minutes", () => {
    const waited = [90_000, 86_400_000].map((retryAfterMs) =>
      askAgain.retryDelay(0, new SteleError("busy", { code: 200300, retry: true, retryAfterMs })),
    );
    expect(waited).toEqual([90_000, 300_000]);
  });
});
