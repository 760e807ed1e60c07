import { describe, expect, it } from "vitest";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import { until } from "../../harness/until.ts";
import { untilAnother, untilDown, untilReady } from "../support/node-health.ts";
import { useClusterScenario } from "../support/use-cluster-scenario.ts";

const timeoutMs = 240_000;
/** Confirmations of a final block: more than the chain's node loses, also if the kill comes late. */
const confirmations = 8;
const blocksLost = { lostMin: 2, lostMax: 4 };

describe.runIf(hasPostgres)(titleOf("three nodes under load whose chain fails"), () => {
  const atWork = useClusterScenario({ blockTimeS: 0.125, group: { finality: confirmations } });

  it(
    "the chain's node stops and restarts with its state",
    async () => {
      const scenario = await atWork();
      await scenario.cluster.stopChain();
      for (const node of scenario.nodes) await untilDown(node);
      await scenario.cluster.resumeChain();
      for (const node of scenario.nodes) await untilReady(node);
      // Nodes could write cursors all the time, so nothing is repeated.
      expect(await scenario.verify()).toBe(0);
    },
    timeoutMs,
  );

  it(
    "the indexing node loses the chain: another node indexes",
    async () => {
      const scenario = await atWork();
      const lonely = await until("a node indexes", () => scenario.findFollower());
      lonely.proxies.chain.refuse();
      await untilAnother(scenario, lonely);
      await scenario.untilNotifiedOfMore();
      lonely.proxies.chain.restore();
      await untilReady(lonely);
      await scenario.untilEven();
      expect(await scenario.verify()).toBe(0);
    },
    timeoutMs,
  );

  it(
    "kill -9 of the chain's node with unsaved blocks, twice: it is back at once, and after the nodes reported it",
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
