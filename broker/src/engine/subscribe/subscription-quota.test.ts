import { afterEach, expect, it } from "vitest";
import { TestEngine } from "../testing/test-engine.ts";

let engine: TestEngine;
afterEach(() => engine.stop());

const overQuota = { code: 200_301 };

async function start(subscriptionsPerReceiverMax: number): Promise<void> {
  engine = await TestEngine.start({ limits: { subscriptionsPerReceiverMax } });
  await engine.broker.open({ topic: "a", groupId: undefined });
}

it("concurrent calls create no more subscriptions to one receiver than the limit", async () => {
  await start(3);
  const calls = Array.from({ length: 9 }, (_, index) => engine.subscribe("a", { url: `http://receiver/${index}` }));
  const results = await Promise.allSettled(calls);
  expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
  for (const result of results.filter(({ status }) => status === "rejected")) {
    expect(result).toMatchObject({ reason: overQuota });
  }
  await engine.subscribe("a", { url: "http://other/" });
});

it("a subscription can stay at a receiver that has reached the limit, but cannot move to one", async () => {
  await start(1);
  const first = await engine.subscribe("a", { url: "http://receiver/1" });
  const second = await engine.subscribe("a", { url: "http://other/" });
  await engine.subscribe("a", { subscriptionId: first, url: "http://receiver/2" });
  await expect(engine.subscribe("a", { subscriptionId: second, url: "http://receiver/" })).rejects.toMatchObject(
    overQuota,
  );
  await engine.broker.unSubscribe({ subscriptionId: first });
  await engine.subscribe("a", { subscriptionId: second, url: "http://receiver/" });
  await expect(engine.subscribe("a", { url: "http://RECEIVER:80/x" })).rejects.toMatchObject(overQuota);
});
