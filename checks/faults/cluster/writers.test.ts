import { describe, expect, it } from "vitest";
import type { ClusterNode } from "../../harness/cluster-node.ts";
import { Cluster } from "../../harness/cluster.ts";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import { until } from "../../harness/until.ts";

/** A node must notice an outage of the chain, and the end of the outage, within this time. */
const timeoutMs = 60_000;

async function hasWarning({ client }: ClusterNode): Promise<boolean> {
  const { text } = await client.http.send({ method: "GET", path: "/health/ready" });
  return text.includes("may not write to this group's topics yet");
}

describe.runIf(hasPostgres)(titleOf("nodes with topicWriters: own"), () => {
  it("each node publishes to topics that the others opened, and so does a node that joins later", async () => {
    await using cluster = await Cluster.start({ nodeCount: 2, group: { topicWriters: "own" } });
    const members = [...cluster.nodes];
    await cluster.nodes[0]?.client.open("own/first");
    await cluster.nodes[1]?.client.publish("own/first", "of the second node");
    // While no member reaches the chain, nobody can add the new node to the writers.
    for (const { proxies } of members) proxies.chain.refuse();
    const added = await cluster.addNode();
    await added.launch();
    await until("the new node warns that it may not write", () => hasWarning(added), { timeoutMs });
    for (const { proxies } of members) proxies.chain.restore();
    await until("the new node may write", async () => !(await hasWarning(added)), { timeoutMs });
    for (const { client } of cluster.nodes) await until("every node is ready", () => client.isReady(), { timeoutMs });
    for (const [index, { client }] of cluster.nodes.entries()) {
      await client.open(`own/${index}`);
      for (const other of cluster.nodes) {
        expect((await other.client.publish(`own/${index}`, "event")).status).toBe("SUCCESS");
      }
    }
    expect((await cluster.stop()).code).toBe(0);
  });
});
