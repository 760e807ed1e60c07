import { expect, it, onTestFinished } from "vitest";
import { publish } from "../testing/publish.ts";
import { TestCluster } from "../testing/test-cluster.ts";

const topic = "a";
const one = { topic, groupId: undefined, content: new Uint8Array([1]), extensions: [] };
const message: unknown = expect.stringContaining("this node has not joined the others");

/** Two nodes, with one event published at the first. */
async function startTwo(): Promise<TestCluster> {
  const cluster = await TestCluster.start(2);
  onTestFinished(() => cluster.stopAll());
  await cluster.run(cluster.node(0).broker.open({ topic, groupId: undefined }));
  await cluster.run(cluster.publish(0, topic, "before"));
  return cluster;
}

it("a node that lost its membership refuses a publish at once, with the reason, until it is a member again", async () => {
  const cluster = await startTwo();
  const { broker, gate } = cluster.node(0);
  gate.cut("refused");
  await cluster.clock.advance(10_000);
  const since = cluster.clock.monotonic();
  await expect(cluster.run(publish(broker, one))).rejects.toMatchObject({ code: 200207, message });
  expect(cluster.clock.monotonic() - since).toBeLessThan(1_000);
  gate.heal();
  await cluster.clock.advance(10_000);
  expect(await cluster.run(cluster.publish(0, topic, "after"))).toMatch(/-2-/);
});

it("a node that was halted until its membership expired accepts no publish, even before its timer for the expiry runs", async () => {
  const cluster = await startTwo();
  const { broker, gate } = cluster.node(0);
  onTestFinished(() => gate.resume());
  gate.halt();
  await cluster.clock.advance(10_000);
  expect(() => broker.submit(one, () => {})).toThrow("this node has not joined the others");
});
