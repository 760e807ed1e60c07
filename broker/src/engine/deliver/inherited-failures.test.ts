import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { before } from "../../domain/position.ts";
import { createDeferred } from "../../lib/deferred.ts";
import type { AttemptOutcome } from "../../ports/sink.ts";
import { allowAll } from "../access/policy.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine } from "../testing/test-engine.ts";

let engine: TestEngine;
let denied: string | undefined;
beforeEach(async () => {
  denied = undefined;
  engine = await TestEngine.start({ policy: { ...allowAll, mayReceive: (_, { topic }) => topic !== denied } });
  for (const topic of ["a", "b"]) await engine.broker.open({ topic, groupId: undefined });
  answer(async () => failed);
});
afterEach(() => engine.stop());

const url = "http://down/";
const options = { onFailure: "skip", attemptsMax: 3 } as const;
const failed: AttemptOutcome = { status: "failed", reason: "500" };
const topicsTried = () => engine.sink.attempts.map(({ event }) => event.topic);
const attemptsOfB = () => topicsTried().filter((topic) => topic === "b").length;

function answer(receiver: (topic: string) => Promise<AttemptOutcome>): void {
  engine.sink.receive(url, ({ event }) => receiver(event.topic));
}

async function restart(): Promise<void> {
  await engine.rebuild();
  await engine.broker.start();
  await engine.clock.settle();
}

async function give(id: string, kind: "pause" | "resume"): Promise<void> {
  const work = engine.broker.operator.orderSubscription(testCaller, id, { order: { kind }, isDryRun: false });
  await engine.clock.settle();
  await engine.clock.advance(1_000);
  await work;
}

/** A subscription that has failed twice at an event of the topic a. Returns its identifier. */
async function failTwice(): Promise<string> {
  const id = await engine.subscribe("+", { url, options });
  await engine.publish("a", "a");
  await engine.clock.advance(2_500);
  expect(topicsTried()).toEqual(["a", "a"]);
  return id;
}

async function expectCursorBeforeB(): Promise<void> {
  const attempt = engine.sink.attempts.find(({ event }) => event.topic === "b");
  const cursor = attempt && before(attempt.event.position);
  expect(await engine.store.listSubscriptions()).toMatchObject([{ cursor, failedAttempts: 1 }]);
}

describe("the next event gets all its attempts if the right to the failing one ends", () => {
  it("while the broker is down", async () => {
    await failTwice();
    await engine.publish("b", "b");
    denied = "a";
    await restart();
    await engine.clock.advance(60_000);
    expect(attemptsOfB()).toBe(3);
  });

  it("and a pause cuts the next event's first attempt", async () => {
    const id = await failTwice();
    await engine.publish("b", "b");
    denied = "a";
    answer(() => createDeferred<AttemptOutcome>().promise);
    await restart();
    expect(attemptsOfB()).toBe(1);
    await give(id, "pause");
    answer(async () => failed);
    await give(id, "resume");
    await engine.clock.advance(60_000);
    expect(attemptsOfB()).toBe(1 + 3);
  });

  it("and the broker stops before there is a next event", async () => {
    await failTwice();
    denied = "a";
    await restart();
    await restart();
    await engine.publish("b", "b");
    await engine.clock.advance(60_000);
    expect(attemptsOfB()).toBe(3);
  });
});

describe("the stored cursor is right before the failing event", () => {
  it("after events that the subscriber may not receive", async () => {
    denied = "a";
    await engine.subscribe("+", { url, options });
    for (const topic of ["a", "b"]) await engine.publish(topic, topic);
    await engine.clock.advance(2_500);
    await expectCursorBeforeB();
  });

  it("after an event of another topic that is accepted later", async () => {
    const ofA = createDeferred<AttemptOutcome>();
    answer(async (topic) => (topic === "a" ? ofA.promise : failed));
    await engine.subscribe("+", { url, options: { ...options, concurrency: 2 } });
    for (const topic of ["a", "b"]) await engine.publish(topic, topic);
    await engine.clock.settle();
    ofA.resolve({ status: "accepted" });
    await engine.clock.advance(100);
    expect(topicsTried()).toEqual(["a", "b"]);
    await expectCursorBeforeB();
  });
});
