import { describe, expect, it } from "vitest";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import { until } from "../../harness/until.ts";
import { untilAnotherIndexes, untilDown, untilReady } from "../support/node-health.ts";
import { useClusterScenario } from "../support/use-cluster-scenario.ts";

const timeoutMs = 240_000;
/** Confirmations of a final block: more than the blocks that a killed chain node can lose. */
const confirmations = 8;
const blocksLost = { lostMin: 2, lostMax: 4 };

describe.runIf(hasPostgres)(titleOf("three nodes under load whose chain fails"), () => {
  const getScenario = useClusterScenario({ blockTimeS: 0.125, group: { finality: confirmations } });

  it(
    "the chain node stops and restarts with its state: no event is lost or repeated",
    async () => {
      const scenario = await getScenario();
      await scenario.cluster.stopChain();
      for (const node of scenario.nodes) await untilDown(node);
      await scenario.cluster.resumeChain();
      for (const node of scenario.nodes) await untilReady(node);
      // Nodes could write cursors all the time, so no event is repeated.
      expect(await scenario.verify()).toBe(0);
    },
    timeoutMs,
  );

  it(
    "the indexing node cannot reach the chain: another node takes over indexing",
    async () => {
      const scenario = await getScenario();
      const isolated = await until("a node indexes", () => scenario.findFollower());
      isolated.proxies.chain.refuse();
      await untilAnotherIndexes(scenario, isolated);
      await scenario.untilNotifiedOfMore();
      isolated.proxies.chain.restore();
      await untilReady(isolated);
      await scenario.untilEven();
      expect(await scenario.verify()).toBe(0);
    },
    timeoutMs,
  );

  it(
    "kill -9 of the chain node with unsaved blocks, restarted at once or after all nodes report the outage: no event is lost or repeated",
    async () => {
      const scenario = await getScenario();
      for (const isReported of [false, true]) {
        await scenario.cluster.killChain(blocksLost);
        if (isReported) for (const node of scenario.nodes) await untilDown(node);
        await scenario.cluster.resumeChain();
        for (const node of scenario.nodes) await untilReady(node);
        await scenario.untilNotifiedOfMore();
      }
      expect(await scenario.verify()).toBe(0);
    },
    timeoutMs,
  );
});
