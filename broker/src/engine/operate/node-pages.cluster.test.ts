import { expect, it } from "vitest";
import { testCaller } from "../testing/as-caller.ts";
import { TestCluster } from "../testing/test-cluster.ts";
import type { NodePage } from "./calls.ts";

it("lists the nodes by address, page by page, and marks the node that answers", async () => {
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

it("shows the roles of each node, and which nodes took over from a killed node and from a node that left", async () => {
  const cluster = await TestCluster.start(3);
  try {
    await cluster.run(cluster.node(0).broker.open({ topic: "t", groupId: undefined }));
    for (let index = 0; index < 3; index += 1) await cluster.run(cluster.subscribe(0, "t"));
    await cluster.clock.advance(30_000);
    const before = await list(cluster, 1);
    const follower = before.items.findIndex(({ roles }) => roles.follows.length > 0);
    expect(before.items.map(({ roles }) => roles)).toEqual(
      [0, 1, 2].map((index) => ({ follows: index === follower ? ["1"] : [], subscriptions: 1, sessions: 0 })),
    );
    const addresses = before.items.map(({ address }) => address);
    cluster.kill(follower);
    await cluster.clock.advance(60_000);
    const between = await list(cluster, (follower + 1) % 3);
    const next = addresses.indexOf(between.items.find(({ roles }) => roles.follows.length > 0)?.address);
    const last = 3 - follower - next;
    const [dead, left, stays] = [follower, next, last].map((index) => addresses[index]);
    await cluster.stop(next);
    await cluster.clock.advance(60_000);
    const { items, history } = await list(cluster, last);
    expect(items).toMatchObject([{ address: stays, roles: { follows: ["1"], subscriptions: 3 } }]);
    const changes = history.map(({ at: _at, ...change }) => change);
    expect(changes).toContainEqual({ what: "gone", node: dead });
    expect(changes).toContainEqual({ what: "took-over", node: expect.any(String), subscriptions: 1, from: dead });
    expect(changes).toContainEqual({ what: "took-over", node: left, groupId: "1", from: dead });
    expect(changes).toContainEqual({ what: "took-over", node: stays, groupId: "1", from: left });
    expect(changes).toContainEqual({ what: "left", node: left });
    expect(changes[0]?.what).not.toBe("joined");
    expect(changes.filter(({ what, node }) => what === "joined" && node === stays)).toHaveLength(1);
    cluster.launch(follower);
    await cluster.clock.advance(60_000);
    const again = await list(cluster, last);
    expect(again.history.find(({ what }) => what === "joined")).toMatchObject({ node: dead });
    expect(again.history.every(({ at }, index) => index === 0 || at <= (again.history[index - 1]?.at ?? 0))).toBe(true);
  } finally {
    await cluster.stopAll();
  }
});

function list(cluster: TestCluster, index: number): Promise<NodePage> {
  return cluster.run(cluster.node(index).broker.operator.listNodes(testCaller, { after: undefined, limit: 9 }));
}
