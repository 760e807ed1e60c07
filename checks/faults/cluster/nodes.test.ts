import { AdminClient } from "@stele/client/admin";
import { describe, expect, it } from "vitest";
import type { ClusterNode } from "../../harness/cluster-node.ts";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import { until } from "../../harness/until.ts";
import type { ClusterScenario } from "../support/cluster-scenario.ts";
import { useClusterScenario } from "../support/use-cluster-scenario.ts";

const timeoutMs = 240_000;

describe.runIf(hasPostgres)(titleOf("three nodes under load"), () => {
  const getScenario = useClusterScenario();

  it(
    "kill -9 and restart of each node in turn: no acknowledged event is lost, and the other nodes deliver",
    async () => {
      const scenario = await getScenario();
      for (const node of scenario.nodes) {
        await scenario.runFault(() => node.kill());
        await scenario.untilNotifiedOfMore();
        await scenario.untilEven();
        await node.start();
        await scenario.untilEven();
        await scenario.untilNotifiedOfMore();
      }
      await scenario.verify();
    },
    timeoutMs,
  );

  it(
    "kill -9 of the indexing node: another node takes over, and events are still published and delivered",
    async () => {
      const scenario = await getScenario();
      const follower = await until("a node indexes", () => scenario.findFollower());
      await scenario.runFault(() => follower.kill());
      const next = await until("another node indexes", async () => {
        const found = await scenario.findFollower();
        return found !== undefined && found !== follower && found;
      });
      await scenario.untilNotifiedOfMore();
      await scenario.untilEven();
      await expectTakenOver(scenario, { next, from: follower });
      // Kill the new follower too: one node is left.
      await scenario.runFault(() => next.kill());
      await scenario.untilNotifiedOfMore();
      await scenario.verify();
    },
    timeoutMs,
  );
});

/** Checks that each running node reports that only `next` indexes, and which nodes took over the work of `from`, the killed node. */
async function expectTakenOver(
  scenario: ClusterScenario,
  { next, from }: { readonly next: ClusterNode; readonly from: ClusterNode },
): Promise<void> {
  const working = scenario.nodes.filter((node) => node !== from);
  for (const { url } of working) {
    const admin = new AdminClient({ url });
    const nodes = await until("the nodes' counts of subscriptions are up to date", async () => {
      const listed = [];
      for await (const node of admin.nodes()) listed.push(node);
      const sum = listed.reduce((count, { roles }) => count + roles.subscriptions, 0);
      return sum === scenario.subscriptions.length && listed;
    });
    expect(new Map(nodes.map(({ address, roles }) => [address, roles.follows]))).toEqual(
      new Map(working.map(({ address }) => [address, address === next.address ? ["1"] : []])),
    );
    const changes = (await admin.nodeHistory()).map(({ at: _at, ...change }) => change);
    expect(changes).toContainEqual({ what: "gone", node: from.address });
    expect(changes).toContainEqual({ what: "took-over", node: next.address, groupId: "1", from: from.address });
    const taken = changes.filter(({ what, from: former, groupId }) => {
      return what === "took-over" && former === from.address && groupId === undefined;
    });
    expect(taken.reduce((sum, { subscriptions = 0 }) => sum + subscriptions, 0)).toBeGreaterThan(0);
  }
}
