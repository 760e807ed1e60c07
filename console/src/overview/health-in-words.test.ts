import { expect, test } from "vitest";
import { describeHealth } from "./health-in-words.ts";

const up = { groupId: "1", ready: true, indexedBlock: 7, headBlock: 8 };
const down = { groupId: "2", ready: false, reason: "chain cannot be reached", indexedBlock: 3 };

test.each([
  [{ status: "ready", groups: [up] }, "good", "Ready: the broker takes and delivers events.", []],
  [{ status: "ready" }, "good", "Ready: the broker takes and delivers events.", []],
  [
    { status: "ready", groups: [{ ...up, warning: "few file descriptors are left", headBlock: 12 }] },
    "warning",
    "Ready, with a warning.",
    ["Group 1: few file descriptors are left.", "The index of group 1 is 5 blocks behind."],
  ],
  [
    { status: "partly ready", groups: [up, down] },
    "warning",
    "Partly ready: 1 of 2 groups cannot serve.",
    ["Group 2 cannot serve: chain cannot be reached."],
  ],
  [{ status: "partly ready" }, "warning", "Partly ready: some groups cannot serve.", []],
  [
    { status: "not ready", groups: [down] },
    "bad",
    "Not ready: no group can serve.",
    ["Group 2 cannot serve: chain cannot be reached."],
  ],
  [{ status: "closing", groups: [] }, "warning", "Stopping: the broker takes no new connections.", []],
  [{ status: "of a newer version" }, "warning", "The broker says: of a newer version.", []],
])("%j in words", (readiness, tone, ...words) => {
  const health = describeHealth(readiness);
  expect([health.tone, health.sentence, health.reasons]).toEqual([tone, ...words]);
});
