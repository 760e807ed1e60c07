import { afterEach, beforeEach, expect, it } from "vitest";
import { allowAll } from "../access/policy.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine } from "../testing/test-engine.ts";
import type { SubscriptionOrder } from "./calls.ts";

let engine: TestEngine;
let id: string;
let denied: readonly (string | undefined)[];
/** A subscription with two waiting events. It may not receive the first, of the topic a, and its receiver fails at the second, of the topic b. */
beforeEach(async () => {
  denied = ["a"];
  engine = await TestEngine.start({ policy: { ...allowAll, mayReceive: (_, { topic }) => !denied.includes(topic) } });
  for (const topic of ["a", "b", "c"]) await engine.broker.open({ topic, groupId: undefined });
  engine.sink.receive("http://down/", () => ({ status: "failed", reason: "500" }));
  id = await engine.subscribe("+", { url: "http://down/" });
  for (const topic of ["a", "b"]) await engine.publish(topic, topic);
  await engine.clock.advance(5_000);
});
afterEach(() => engine.stop());

const find = async () => (await engine.broker.operator.getSubscription(testCaller, id)).subscription;

async function order(one: SubscriptionOrder): Promise<void> {
  const work = engine.broker.operator.orderSubscription(testCaller, id, { order: one, isDryRun: false });
  work.catch(() => undefined);
  await engine.clock.advance(1_000);
  await work;
}

it("skip moves the cursor past the failing event, even if the owner may not receive an earlier one", async () => {
  await order({ kind: "skip", to: undefined });
  const attempts = engine.sink.attempts.length;
  await engine.clock.advance(600_000);
  expect(engine.sink.attempts).toHaveLength(attempts);
  expect((await find()).failedAttempts).toBe(0);
});

it("skip passes no event that was never attempted, even if the right to the failing event has ended", async () => {
  await order({ kind: "pause" });
  denied = ["a", "b"];
  await engine.publish("c", "c");
  await order({ kind: "skip", to: undefined });
  await order({ kind: "resume" });
  expect(engine.sink.attempts.at(-1)?.event.topic).toBe("c");
});
