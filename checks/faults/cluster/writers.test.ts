import { describe, expect, it } from "vitest";
import type { ClusterNode } from "../../harness/cluster-node.ts";
import { Cluster } from "../../harness/cluster.ts";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import { until } from "../../harness/until.ts";

async function hasWarning({ client }: ClusterNode): Promise<boolean> {
  const { text } = await client.http.send({ method: "GET", path: "/health/ready" });
  return text.includes("may not write to this group's topics yet");
}

describe.runIf(hasPostgres)(titleOf("nodes with topicWriters: own"), () => {
  it("each write to the topics of the others, and so does a node that comes later", async () => {
    await using cluster = await Cluster.start({ nodeCount: 2, group: { topicWriters: "own" } });
    await cluster.nodes[0]?.client.open("own/first");
    await cluster.nodes[1]?.client.publish("own/first", "of the second node");
    const added = await cluster.addNode();
    await added.start();
    await until("the new node may write", async () => !(await hasWarning(added)));
    for (const [index, { client }] of cluster.nodes.entries()) {
      await client.open(`own/${index}`);
      for (const other of cluster.nodes) {
        expect((await other.client.publish(`own/${index}`, "event")).status).toBe("SUCCESS");
      }
    }
    expect((await cluster.stop()).code).toBe(0);
  });
});
