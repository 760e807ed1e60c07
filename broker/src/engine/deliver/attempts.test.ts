import { ReceiverFailures } from "./receiver-failures.ts";
import { formatEventId } from "@stele/wire";
import { expect, it } from "vitest";
import { toPosition } from "../../domain/position.ts";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { silentLogger } from "../../lib/logger.ts";
import { noMetrics } from "../../ports/metrics.ts";
import type { AttemptOutcome, Notification, Sink } from "../../ports/sink.ts";
import { defaultEngineLimits } from "../limits.ts";
import { RecordingSink } from "../testing/recording-sink.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { AttemptHistory } from "./attempt-history.ts";
import { deliver } from "./attempts.ts";

const hour = 3_600_000;
const day = 24 * hour;
const unaborted = new AbortController().signal;
const notification: Notification = {
  subscription: {
    id: parseSubscriptionId("00000000-0000-4000-8000-000000000001"),
    format: "RESTful",
    url: "http://receiver/",
    secret: undefined,
  },
  event: {
    topic: parseTopicName("a"),
    content: new Uint8Array([1]),
    extensions: [],
    sequence: 1,
    blockNumber: 1,
    position: toPosition(1, 0),
  },
  eventId: formatEventId({ topicDigest: "2cf24dba", sequence: 1, blockNumber: 1 }),
};

function createComponents() {
  const sink = new RecordingSink();
  const clock = new VirtualClock();
  const seen: string[] = [];
  const see = (message: string): void => void seen.push(message);
  const parts = {
    sink,
    clock,
    randomness: { fraction: () => 0.5, uuid: () => "", bytes: (count: number) => new Uint8Array(count) },
    metrics: { ...noMetrics, attemptEnded: see },
    logger: { ...silentLogger, warn: see, error: see, info: see },
    limits: defaultEngineLimits,
    failures: new ReceiverFailures(clock),
    history: new AttemptHistory(),
  };
  return { sink, clock, seen, parts };
}

it("deliver makes, counts and logs no attempt once mayStart returns false", async () => {
  const { sink, clock, seen, parts } = createComponents();
  let mayStart = true;
  sink.receive("http://receiver/", () => {
    mayStart = false;
    return { status: "failed", reason: "500" };
  });
  const signals = { stopping: unaborted, aborting: unaborted, mayStart: () => mayStart };
  const delivery = deliver(parts, notification, signals);
  await clock.advance(60_000);
  expect(await delivery).toEqual({ status: "interrupted" });
  expect(sink.attempts).toHaveLength(1);
  expect(seen).toEqual(["failed", "delivery failed"]);
});

/** A sink whose first attempt breaks the contract of the port: it throws or rejects. */
class BrokenOnce extends RecordingSink {
  readonly #breaks: () => Promise<AttemptOutcome>;
  #isBroken = false;

  constructor(breaks: () => Promise<AttemptOutcome>) {
    super();
    this.#breaks = breaks;
  }

  override attempt(...order: Parameters<Sink["attempt"]>): Promise<AttemptOutcome> {
    if (this.#isBroken) return super.attempt(...order);
    this.#isBroken = true;
    return this.#breaks();
  }
}

const broken = new TypeError("not a function");
it.each([
  ["rejects", () => Promise.reject(broken)],
  [
    "throws",
    () => {
      throw broken;
    },
  ],
])("if the sink %s, deliver counts the attempt as failed, logs an error, and tries again", async (_, breaks) => {
  const { clock, seen, parts } = createComponents();
  const sink = new BrokenOnce(breaks);
  const delivery = deliver({ ...parts, sink }, notification, { stopping: unaborted, aborting: unaborted });
  await clock.advance(60_000);
  expect(await delivery).toEqual({ status: "accepted" });
  expect(seen).toEqual([
    "delivery failed inside the broker, report this as a bug",
    "failed",
    "delivery failed",
    "accepted",
    "delivery works again",
  ]);
});

it.each([
  ["set forward by four days and back", 4 * day],
  ["set back by six hours and forward", -6 * hour],
  ["set forward by ten years and back", 3650 * day],
])("deliver does not give up while a receiver fails and the clock is %s", async (_, step) => {
  const { sink, clock, parts } = createComponents();
  sink.receive("http://receiver/", () => {
    if (sink.attempts.length === 2) clock.step(step);
    if (sink.attempts.length === 4) clock.step(-step);
    return sink.attempts.length < 6 ? { status: "failed", reason: "500" } : { status: "accepted" };
  });
  const delivery = deliver(parts, notification, { stopping: unaborted, aborting: unaborted });
  await clock.advance(10 * 60_000);
  expect(await delivery).toEqual({ status: "accepted" });
});

it("deliver gives up when the receiver has failed for three days", async () => {
  const { sink, clock, parts } = createComponents();
  sink.receive("http://receiver/", () => ({ status: "failed", reason: "500" }));
  const delivery = deliver(parts, notification, { stopping: unaborted, aborting: unaborted });
  await clock.advance(3 * day - hour);
  const before = sink.attempts.length;
  await clock.advance(2 * hour);
  expect(sink.attempts.length).toBeGreaterThan(before);
  expect(await delivery).toMatchObject({ status: "failed" });
});

it("deliver waits whole milliseconds, which the store keeps, even if the receiver asks for a fraction", async () => {
  const { sink, clock, parts } = createComponents();
  sink.receive("http://receiver/", () =>
    sink.attempts.length === 1
      ? { status: "failed", reason: "not agreed", retryAfterMs: 59_999.37 }
      : { status: "accepted" },
  );
  const waits: number[] = [];
  const delivery = deliver(parts, notification, {
    stopping: unaborted,
    aborting: unaborted,
    onWaiting: ({ waitMs }) => void waits.push(waitMs),
    onFailing: ({ waitedMs }) => void waits.push(waitedMs),
  });
  await clock.advance(60_000);
  expect(await delivery).toEqual({ status: "accepted" });
  expect(waits).toEqual([60_000, 60_000]);
});

it("deliver does not give up at the first failure because another topic's answer delayed the first attempt for long", async () => {
  const { sink, clock, parts } = createComponents();
  sink.receive("http://receiver/", () =>
    sink.attempts.length === 1 ? { status: "failed", reason: "500" } : { status: "accepted" },
  );
  const limits = { ...defaultEngineLimits, giveUpAfterMs: 60_000 };
  const leftMs = (): number => (sink.attempts.length === 0 ? hour : 0);
  const delivery = deliver({ ...parts, limits }, notification, { stopping: unaborted, aborting: unaborted, leftMs });
  await clock.advance(hour + 60_000);
  expect(await delivery).toEqual({ status: "accepted" });
});
