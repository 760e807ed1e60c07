import { expect, it } from "vitest";
import { testCaller } from "../testing/as-caller.ts";
import { TestCluster } from "../testing/test-cluster.ts";

it("lists the nodes by address, page by page, and marks the one that answers", async () => {
  const cluster = await TestCluster.start(3);
  try {
    const { operator } = cluster.node(1).broker;
    const first = await operator.listNodes(testCaller, { after: undefined, limit: 2 });
    expect(first.items).toMatchObject([
      { address: cluster.node(0).address, isOwn: false },
      { address: cluster.node(1).address, isOwn: true },
    ]);
    const rest = await operator.listNodes(testCaller, { after: first.next, limit: 2 });
    expect(rest).toMatchObject({ items: [{ address: cluster.node(2).address, isOwn: false }], next: undefined });
  } finally {
    await cluster.stopAll();
  }
});
