import { afterEach, describe, expect, it } from "vitest";
import type { AttemptOutcome } from "../../ports/sink.ts";
import { testCaller } from "../testing/as-caller.ts";
import { secretNamed } from "../testing/secret-named.ts";
import { TestEngine } from "../testing/test-engine.ts";
import type { DeliveryChange, SubscriptionOrder } from "./calls.ts";

const giveUpAfterMs = 20_000;
const url = "http://down/";
const down: AttemptOutcome = { status: "failed", reason: "500" };

let engine: TestEngine;
afterEach(() => engine.stop());

/** Starts an engine with a subscription whose receiver fails. */
async function start(call: Parameters<TestEngine["subscribe"]>[1] = {}): Promise<string> {
  engine = await TestEngine.start({ limits: { giveUpAfterMs } });
  for (const topic of ["a", "b"]) await engine.broker.open({ topic, groupId: undefined });
  engine.sink.receive(url, () => down);
  return engine.subscribe("+", { url, ...call });
}

const find = (id: string) => engine.broker.operator.getSubscription(testCaller, id);

/** Gives an order. It stops the worker, whose attempt in progress may take a second of virtual time. */
async function give(id: string, order: SubscriptionOrder): Promise<void> {
  const work = engine.broker.operator.orderSubscription(testCaller, id, { order, isDryRun: false });
  work.catch(() => undefined);
  await engine.clock.settle();
  await engine.clock.advance(1_000);
  await work;
}

const change = (one: DeliveryChange): SubscriptionOrder => ({ kind: "change", change: one });
const pauseAndResume: readonly SubscriptionOrder[] = [{ kind: "pause" }, { kind: "resume" }];

describe.each<[string, readonly SubscriptionOrder[]]>([
  ["retry", [{ kind: "retry" }]],
  ["a change of the secret", [change({ secret: secretNamed("other") })]],
  ["pause and resume", pauseAndResume],
])("%s again and again", (_, orders) => {
  it("does not delay suspension", async () => {
    const id = await start();
    await engine.publishMany("a", 1);
    await engine.clock.settle();
    const since = (await find(id)).subscription.failingSince;
    for (let count = 0; count < 3; count += 1) for (const order of orders) await give(id, order);
    const { subscription } = await find(id);
    expect(subscription).toMatchObject({ state: "active", failingSince: since });
    expect(subscription.failedAttempts).toBeGreaterThan(3);
    await engine.clock.advance(2 * giveUpAfterMs);
    const { failedAttempts, failedMs, state } = (await find(id)).subscription;
    expect(state).toBe("suspended");
    expect(failedAttempts).toBeGreaterThan(3);
    expect(failedMs).toBeLessThan(3 * giveUpAfterMs);
  });

  it("does not change the number of attempts before a dead letter", async () => {
    const id = await start({ options: { onFailure: "skip", attemptsMax: 3 } });
    await engine.publishMany("a", 1);
    await engine.clock.settle();
    for (let count = 0; count < 3; count += 1) for (const order of orders) await give(id, order);
    const page = { after: undefined, limit: 10 };
    const letters = await engine.broker.operator.listDeadLetters(testCaller, id, page);
    expect(letters.items).toMatchObject([{ attempts: 3 }]);
    expect(engine.sink.sequencesOf(id)).toEqual([1, 1, 1]);
  });
});

describe.each<[string, SubscriptionOrder, string]>([
  ["a change of the url", change({ url: "http://down/too" }), "http://down/too"],
  ["skip", { kind: "skip", to: undefined }, url],
  ["a change of the topic that leaves the event out", change({ topic: "b" }), url],
])("%s", (_, order, to) => {
  it("resets the failure counts", async () => {
    const id = await start();
    engine.sink.receive(to, () => down);
    await engine.publishMany("a", 1);
    await engine.publishMany("b", 1);
    await engine.clock.advance(5_000);
    const before = (await find(id)).subscription;
    await give(id, order);
    const after = (await find(id)).subscription;
    expect(after.failingSince).toBeGreaterThan(before.failingSince);
    expect(after.failedAttempts).toBeLessThan(before.failedAttempts);
  });
});

it("a change of the topic that still matches the failed event keeps the failure counts", async () => {
  const id = await start();
  await engine.publishMany("a", 1);
  await engine.clock.advance(5_000);
  const before = (await find(id)).subscription;
  await give(id, change({ topic: "a" }));
  const after = (await find(id)).subscription;
  expect(after.failingSince).toBe(before.failingSince);
  expect(after.failedAttempts).toBe(before.failedAttempts + 1);
});

it.each<[string, readonly SubscriptionOrder[]]>([
  ["resume", [{ kind: "resume" }]],
  ["retry", [{ kind: "retry" }]],
  ["pause and resume", pauseAndResume],
])("%s of a suspended subscription gives the receiver the full time until the next suspension", async (_, orders) => {
  const id = await start();
  await engine.publishMany("a", 1);
  await engine.clock.advance(3 * giveUpAfterMs);
  expect((await find(id)).subscription.state).toBe("suspended");
  for (const order of orders) await give(id, order);
  await engine.clock.advance(giveUpAfterMs / 2);
  expect((await find(id)).subscription.state).toBe("active");
});
