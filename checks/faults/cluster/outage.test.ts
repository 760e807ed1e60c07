import { describe, expect, it } from "vitest";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import { until } from "../../harness/until.ts";
import { untilAnotherIndexes, untilDown, untilReady } from "../support/node-health.ts";
import { useClusterScenario } from "../support/use-cluster-scenario.ts";

const timeoutMs = 240_000;

describe.runIf(hasPostgres)(titleOf("three nodes under load whose database fails"), () => {
  const getScenario = useClusterScenario();

  it(
    "kill -9 of PostgreSQL, restarted at once or after all nodes report the outage: no acknowledged event is lost",
    async () => {
      const scenario = await getScenario();
      const { server } = scenario.cluster.database;
      await scenario.runFault(async () => {
        await server.kill();
        await server.resume();
        await scenario.untilNotifiedOfMore();
      });
      await scenario.runFault(async () => {
        await server.kill();
        for (const node of scenario.nodes) await untilDown(node);
        await server.resume();
        for (const node of scenario.nodes) await untilReady(node);
        await scenario.untilEven();
      });
      await scenario.verify();
    },
    timeoutMs,
  );

  it(
    "PostgreSQL does not answer one node until the node reports the outage: others take over its work, and the node joins again",
    async () => {
      const scenario = await getScenario();
      const isolated = await until("a node indexes", () => scenario.findFollower());
      const nodeId = await scenario.findNodeId(isolated);
      await scenario.runFault(async () => {
        isolated.proxies.database.silence();
        await untilAnotherIndexes(scenario, isolated);
        await scenario.untilNotifiedOfMore();
        await untilDown(isolated);
        expect(await isolated.client.listGroupFailures()).toEqual([
          expect.stringContaining("database cannot be reached"),
        ]);
        isolated.proxies.database.restore();
        await untilReady(isolated);
        expect(await scenario.findNodeId(isolated)).not.toBe(nodeId);
        await scenario.untilEven();
      });
      await scenario.verify();
    },
    timeoutMs,
  );
});
