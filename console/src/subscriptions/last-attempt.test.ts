import { expect, test } from "vitest";
import { lastAttemptOf } from "./last-attempt.ts";

const [earlier, later] = ["2026-01-01T00:00:00.000Z", "2026-01-01T00:01:00.000Z"];
const attempt = (outcome: string, at: string) => ({ outcome, at, eventId: "e", count: 1, durationMs: 1 });
const failing = { since: earlier, attempts: 1 };

test.each([
  ["a failed one", { lastAttempt: attempt("failed", later), failing }, ["failed", later]],
  ["the acknowledgement, where this node knows none", { notifiedAt: later }, ["accepted", later]],
  [
    "the acknowledgement at another node since then",
    { lastAttempt: attempt("failed", earlier), notifiedAt: later },
    ["accepted", later],
  ],
  ["none before the first", {}, [undefined, undefined]],
  ["none, where another node's receiver fails", { failing, notifiedAt: earlier }, [undefined, undefined]],
] as const)("is %s", (_, item, expected) => {
  const last = lastAttemptOf({ lastAttempt: undefined, failing: undefined, ...item });
  expect([last?.outcome, last?.at]).toEqual(expected);
});
