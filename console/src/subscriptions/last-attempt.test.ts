import { expect, test } from "vitest";
import { lastAttemptOf } from "./last-attempt.ts";

const [earlier, later] = ["2026-01-01T00:00:00.000Z", "2026-01-01T00:01:00.000Z"];
const attempt = (outcome: string, at: string) => ({ outcome, at, eventId: "e", count: 1, durationMs: 1 });
const failing = { since: earlier, attempts: 1 };

test.each([
  ["the failed one of this node", { lastAttempt: attempt("failed", later), failing }, ["failed", later]],
  [
    "accepted, at the time of the acknowledgement, if this node knows no attempt",
    { notifiedAt: later },
    ["accepted", later],
  ],
  [
    "accepted, at the time of a later acknowledgement through another node",
    { lastAttempt: attempt("failed", earlier), notifiedAt: later },
    ["accepted", later],
  ],
  ["unknown before the first", {}, [undefined, undefined]],
  ["unknown while attempts of another node are failing", { failing, notifiedAt: earlier }, [undefined, undefined]],
] as const)("the last attempt is %s", (_, item, expected) => {
  const last = lastAttemptOf({ lastAttempt: undefined, failing: undefined, ...item });
  expect([last?.outcome, last?.at]).toEqual(expected);
});
