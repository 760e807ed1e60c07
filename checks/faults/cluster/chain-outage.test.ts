import { describe, expect, it } from "vitest";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import { until } from "../../harness/until.ts";
import { untilAnother, untilDown, untilReady } from "../support/node-health.ts";
import { useClusterScenario } from "../support/use-cluster-scenario.ts";

const timeoutMs = 240_000;
/** Confirmations of a final block: more blocks than a killed chain node loses, also if the kill comes late. */
const confirmations = 8;
const blocksLost = { lostMin: 2, lostMax: 4 };

describe.runIf(hasPostgres)(titleOf("three nodes under load whose chain fails"), () => {
  const atWork = useClusterScenario({ blockTimeS: 0.125, group: { finality: confirmations } });

  it(
    "the chain's node stops and restarts with its state: no event is lost or repeated",
    async () => {
      const scenario = await atWork();
      await scenario.cluster.stopChain();
      for (const node of scenario.nodes) await untilDown(node);
      await scenario.cluster.resumeChain();
      for (const node of scenario.nodes) await untilReady(node);
      // Nodes could always write cursors, so no event is repeated.
      expect(await scenario.verify()).toBe(0);
    },
    timeoutMs,
  );

  it(
    "the indexing node cannot reach the chain: another node takes over indexing",
    async () => {
      const scenario = await atWork();
      const isolated = await until("a node indexes", () => scenario.findFollower());
      isolated.proxies.chain.refuse();
      await untilAnother(scenario, isolated);
      await scenario.untilNotifiedOfMore();
      isolated.proxies.chain.restore();
      await untilReady(isolated);
      await scenario.untilEven();
      expect(await scenario.verify()).toBe(0);
    },
    timeoutMs,
  );

  it(
    "kill -9 of the chain's node with unsaved blocks, back at once or after all nodes report the outage: no event is lost or repeated",
    async () => {
      const scenario = await atWork();
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
