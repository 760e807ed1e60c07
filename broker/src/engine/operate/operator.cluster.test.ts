import { afterEach, expect, it } from "vitest";
import { testCaller } from "../testing/as-caller.ts";
import { TestCluster } from "../testing/test-cluster.ts";
import type { SubscriptionOrder } from "./calls.ts";

let cluster: TestCluster;
async function start(count: number): Promise<TestCluster> {
  cluster = await TestCluster.start(count);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  return cluster;
}
afterEach(() => cluster.stopAll());

const order = (index: number, id: string, one: SubscriptionOrder) =>
  cluster.run(cluster.node(index).broker.operator.orderSubscription(testCaller, id, { order: one, isDryRun: false }));

it("any node carries out orders, whichever node delivers the subscription", async () => {
  await start(3);
  const id = await cluster.run(cluster.subscribe(0, "a"));
  await cluster.run(cluster.publish(0, "a", "1"));
  await cluster.clock.advance(500);
  expect(await order(1, id, { kind: "pause" })).toEqual({ id, events: 0 });
  for (const text of ["2", "3", "4"]) await cluster.run(cluster.publish(2, "a", text));
  await cluster.clock.advance(5_000);
  expect(cluster.sink.sequencesOf(id)).toEqual([1]);
  expect(await order(2, id, { kind: "skip", to: { sequence: 2 } })).toEqual({ id, events: 1 });
  expect(await order(0, id, { kind: "resume" })).toEqual({ id, events: 2 });
  await cluster.clock.advance(500);
  expect(cluster.sink.sequencesOf(id)).toEqual([1, 3, 4]);
  expect(await order(1, id, { kind: "replay", from: "OFFSET_FIRST" })).toEqual({ id, events: 4 });
  await cluster.clock.advance(500);
  expect(cluster.sink.sequencesOf(id)).toEqual([1, 3, 4, 1, 2, 3, 4]);
});

it("a paused subscription stays paused when its node dies", async () => {
  await start(2);
  const id = await cluster.run(cluster.subscribe(0, "a"));
  await order(0, id, { kind: "pause" });
  cluster.kill(0);
  await cluster.clock.advance(20_000);
  await cluster.run(cluster.publish(1, "a", "1"));
  await cluster.clock.advance(5_000);
  expect(cluster.sink.sequencesOf(id)).toEqual([]);
  expect(await order(1, id, { kind: "resume" })).toEqual({ id, events: 1 });
  await cluster.clock.advance(500);
  expect(cluster.sink.sequencesOf(id)).toEqual([1]);
});

it.each(["kill", "stop"] as const)(
  "after a %s of its node, a subscription still waits for the delay that the receiver asked for",
  async (end) => {
    await start(2);
    cluster.sink.receive("http://receiver/", () =>
      cluster.sink.attempts.length === 1
        ? { status: "failed", reason: "503", retryAfterMs: 60_000 }
        : { status: "accepted" },
    );
    const id = await cluster.run(cluster.subscribe(0, "a"));
    await cluster.run(cluster.publish(0, "a", "1"));
    await cluster.clock.advance(500);
    const [first] = cluster.attempts;
    const owner = cluster.nodes.findIndex((node) => node === first?.node);
    if (end === "kill") cluster.kill(owner);
    else await cluster.stop(owner);
    await cluster.clock.advance(30_000);
    expect(cluster.sink.sequencesOf(id)).toEqual([1]);
    await cluster.clock.advance(60_000);
    expect(cluster.sink.sequencesOf(id)).toEqual([1, 1]);
    const [, second] = cluster.attempts;
    expect(second?.node).not.toBe(first?.node);
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(60_000);
  },
);
