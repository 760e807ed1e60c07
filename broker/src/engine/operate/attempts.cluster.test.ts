import { afterEach, expect, it } from "vitest";
import type { AttemptOutcome } from "../../ports/sink.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestCluster } from "../testing/test-cluster.ts";

let cluster: TestCluster;
let outcome: AttemptOutcome;
afterEach(() => cluster.stopAll());

/** Subscribes at the first node and publishes one event. The receiver answers with `outcome`. */
async function start(): Promise<string> {
  cluster = await TestCluster.start(2);
  cluster.sink.receive("http://receiver/", () => outcome);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const id = await cluster.run(cluster.subscribe(0, "a"));
  await cluster.run(cluster.publish(0, "a", "1"));
  await cluster.clock.advance(500);
  return id;
}

const find = (index: number, id: string) =>
  cluster.run(cluster.node(index).broker.operator.getSubscription(testCaller, id));
const attemptsAt = async (index: number, id: string) => (await find(index, id)).attempts.map(({ reason }) => reason);

/** Orders a retry at a node. The node first takes ownership of the subscription. */
async function retryAt(index: number, id: string): Promise<void> {
  const { operator } = cluster.node(index).broker;
  await cluster.run(operator.orderSubscription(testCaller, id, { order: { kind: "retry" }, isDryRun: false }));
  await cluster.clock.advance(500);
}

it("only the node that delivers a subscription shows attempts, and only its own", async () => {
  outcome = { status: "failed", reason: "first" };
  const id = await start();
  expect([await attemptsAt(0, id), await attemptsAt(1, id)]).toEqual([["first"], []]);
  outcome = { status: "failed", reason: "second" };
  await retryAt(1, id);
  expect([await attemptsAt(0, id), (await attemptsAt(1, id))[0]]).toEqual([[], "second"]);
  outcome = { status: "failed", reason: "third" };
  await retryAt(0, id);
  expect([new Set(await attemptsAt(0, id)), await attemptsAt(1, id)]).toEqual([new Set(["third"]), []]);
});

it("every node shows the time of the next attempt that the receiver asked for", async () => {
  outcome = { status: "failed", reason: "503", retryAfterMs: 600_000 };
  const id = await start();
  const { nextAttemptAt } = await find(0, id);
  expect(nextAttemptAt).toBeGreaterThan(cluster.clock.now() + 500_000);
  expect((await find(1, id)).nextAttemptAt).toBe(nextAttemptAt);
});
