import { expect, it } from "vitest";
import { TestCluster } from "../testing/test-cluster.ts";

it("gets subscriptions of another node in less than 180 ms on average if the network delays every message by 8 ms", async () => {
  const cluster = await TestCluster.start(2, { delayMs: () => 8 });
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const ids: string[] = [];
  while (ids.length < 40) ids.push(await cluster.run(cluster.subscribe(0, "a")));
  await cluster.clock.advance(5_000);
  const owners = await cluster.owners();
  const others = ids.filter((id) => owners.get(id) === "node-1:1");
  expect(others.length).toBeGreaterThan(10);
  let tookMs = 0;
  for (const id of others) {
    const since = cluster.clock.monotonic();
    await cluster.run(cluster.unSubscribe(0, id).then(() => (tookMs += cluster.clock.monotonic() - since)));
  }
  expect(tookMs / others.length).toBeLessThan(180);
  await cluster.stopAll();
});
