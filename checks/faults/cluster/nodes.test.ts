import { describe, it } from "vitest";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import { until } from "../../harness/until.ts";
import { useClusterScenario } from "../support/use-cluster-scenario.ts";

const timeoutMs = 240_000;

describe.runIf(hasPostgres)(titleOf("three nodes under load"), () => {
  const atWork = useClusterScenario();

  it(
    "kill -9 and restart of each node in turn: no acknowledged event is lost, and the others go on",
    async () => {
      const scenario = await atWork();
      for (const node of scenario.nodes) {
        await scenario.harm(() => node.kill());
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
    "kill -9 of the indexing node: another takes over, and publishing goes on",
    async () => {
      const scenario = await atWork();
      const follower = await until("a node indexes", () => scenario.findFollower());
      await scenario.harm(() => follower.kill());
      const next = await until("another indexes", async () => {
        const found = await scenario.findFollower();
        return found !== undefined && found !== follower && found;
      });
      await scenario.untilNotifiedOfMore();
      // Again, with one node left.
      await scenario.harm(() => next.kill());
      await scenario.untilNotifiedOfMore();
      await scenario.verify();
    },
    timeoutMs,
  );
});
