import { formatEventId } from "@stele/wire";
import { expect, it } from "vitest";
import { toPosition } from "../../domain/position.ts";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import type { Notification } from "../../ports/sink.ts";
import {
  AttemptHistory,
  attemptsPerSubscriptionMax,
  type EndedAttempt,
  excerptBytesMax,
  historyBytesMax,
} from "./attempt-history.ts";

const idOf = (number: number) =>
  parseSubscriptionId(`00000000-0000-4000-8000-${number.toString(16).padStart(12, "0")}`);

function notificationOf(number: number, sequence = 1): Notification {
  return {
    subscription: { id: idOf(number), format: "RESTful", url: "http://receiver/", secret: undefined },
    event: {
      topic: parseTopicName("a"),
      content: new Uint8Array(),
      extensions: [],
      sequence,
      blockNumber: 1,
      position: toPosition(1, 0),
    },
    eventId: formatEventId({ topicDigest: "2cf24dba", sequence, blockNumber: 1 }),
  };
}

const accepted: EndedAttempt = { outcome: { status: "accepted" }, answer: undefined, at: 1, durationMs: 2 };
const failed = (body = ""): EndedAttempt => ({
  ...accepted,
  outcome: { status: "failed", reason: "answered 503" },
  answer: { status: 503, body: new TextEncoder().encode(body) },
});

it("merges consecutive accepted attempts, and keeps the first 1,024 bytes of the answer to a failed one", () => {
  const history = new AttemptHistory();
  for (const sequence of [1, 2, 3]) history.note(notificationOf(1, sequence), accepted);
  history.note(notificationOf(1, 4), failed("x".repeat(3_000)));
  history.note(notificationOf(1, 4), accepted);
  expect(history.of(idOf(1))).toMatchObject([
    { outcome: "accepted", count: 1 },
    { outcome: "failed", reason: "answered 503", status: 503, excerpt: "x".repeat(excerptBytesMax) },
    { outcome: "accepted", count: 3, eventId: notificationOf(1, 3).eventId },
  ]);
  expect(history.of(idOf(2))).toEqual([]);
});

it("keeps the newest ten attempts of a subscription", () => {
  const history = new AttemptHistory();
  for (let sequence = 1; sequence <= 30; sequence += 1) history.note(notificationOf(1, sequence), failed());
  const kept = history.of(idOf(1));
  expect([kept.length, kept[0]?.eventId]).toEqual([attemptsPerSubscriptionMax, notificationOf(1, 30).eventId]);
});

it("keeps at most historyBytesMax for all subscriptions, and forgets the attempts of those whose last new record is oldest", () => {
  const history = new AttemptHistory();
  const count = Math.floor(historyBytesMax / 500);
  for (let number = 0; number < count; number += 1) history.note(notificationOf(number), accepted);
  const remembered = Array.from({ length: count }, (_, number) => history.of(idOf(number)).length);
  const forgotten = remembered.indexOf(1);
  expect(forgotten).toBeGreaterThan(0);
  expect(remembered).toEqual(remembered.map((_, number) => Number(number >= forgotten)));
  const long = historyBytesMax / excerptBytesMax / 2;
  for (let number = 0; number <= long; number += 1) history.note(notificationOf(number), failed("y".repeat(2_000)));
  expect([history.of(idOf(0)), history.of(idOf(long)).length, history.of(idOf(count - 1))]).toEqual([[], 1, []]);
});

it("counts failure reasons towards historyBytesMax", () => {
  const history = new AttemptHistory();
  const reason = "r".repeat(10_000);
  const count = Math.floor(historyBytesMax / reason.length);
  for (let number = 0; number < count; number += 1) {
    history.note(notificationOf(number), { ...failed(), outcome: { status: "failed", reason } });
  }
  expect(history.of(idOf(0))).toEqual([]);
});
