import { describe, expect, it } from "vitest";
import type { ClusterNode } from "../../harness/cluster-node.ts";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import { until } from "../../harness/until.ts";
import { ClusterTrial } from "../support/cluster-trial.ts";
import { useClusterTrial } from "../support/use-cluster-trial.ts";

const timeoutMs = 240_000;
/** Until a node tells that something is away: what a call waits for it, and the look after that. */
const toldMs = 60_000;
/** Blocks on top of a final one: more than the chain's node loses, also where it is killed a moment late. */
const confirmations = 8;
const blocksLost = { lostMin: 2, lostMax: 4 };

describe.runIf(hasPostgres)(titleOf("three nodes under load whose surroundings fail"), () => {
  const atWork = useClusterTrial();

  it(
    "kill -9 of PostgreSQL and its start at once, and again for longer than nodes are waited for",
    async () => {
      const trial = await atWork();
      const { server } = trial.cluster.database;
      await trial.harm(async () => {
        await server.kill();
        await server.resume();
        await trial.untilToldOfMore();
      });
      await trial.harm(async () => {
        await server.kill();
        for (const node of trial.nodes) await untilDown(node);
        await server.resume();
        for (const node of trial.nodes) await untilReady(node);
        await trial.untilEven();
      });
      await trial.verify();
    },
    timeoutMs,
  );

  it(
    "the chain's node ends and comes back with its state",
    async () => {
      const trial = await atWork();
      await trial.cluster.stopChain();
      for (const node of trial.nodes) await untilDown(node);
      await trial.cluster.resumeChain();
      for (const node of trial.nodes) await untilReady(node);
      // Cursors could be written all the time: nothing is repeated.
      expect(await trial.verify()).toBe(0);
    },
    timeoutMs,
  );

  it(
    "kill -9 of the chain's node, three times, each with blocks that its disk did not have yet",
    async () => {
      await using trial = await ClusterTrial.start({ blockTimeS: 0.25, group: { finality: confirmations } });
      for (let time = 0; time < 3; time += 1) {
        await trial.cluster.killChain(blocksLost);
        if (time > 0) for (const node of trial.nodes) await untilDown(node);
        await trial.cluster.resumeChain();
        for (const node of trial.nodes) await untilReady(node);
        await trial.untilToldOfMore();
      }
      expect(await trial.verify()).toBe(0);
    },
    timeoutMs,
  );

  it(
    "the network between one node and PostgreSQL is cut for longer than it is waited for: others take over what it had",
    async () => {
      const trial = await atWork();
      const lonely = await until("a node indexes", () => trial.findFollower());
      const nodeId = await trial.findNodeId(lonely);
      await trial.harm(async () => {
        lonely.proxies.database.silence();
        await untilAnother(trial, lonely);
        await trial.untilToldOfMore();
        await untilDown(lonely);
        expect(await lonely.client.listGroupFailures()).toEqual([
          expect.stringContaining("database cannot be reached"),
        ]);
        lonely.proxies.database.restore();
        await untilReady(lonely);
        expect(await trial.findNodeId(lonely)).not.toBe(nodeId);
        await trial.untilEven();
      });
      await trial.verify();
    },
    timeoutMs,
  );

  it(
    "the node that indexes reaches the chain no more: another one indexes",
    async () => {
      const trial = await atWork();
      const lonely = await until("a node indexes", () => trial.findFollower());
      lonely.proxies.chain.refuse();
      await untilAnother(trial, lonely);
      await trial.untilToldOfMore();
      lonely.proxies.chain.restore();
      await untilReady(lonely);
      await trial.untilEven();
      expect(await trial.verify()).toBe(0);
    },
    timeoutMs,
  );
});

async function untilAnother(trial: ClusterTrial, lonely: ClusterNode): Promise<void> {
  await until("another node indexes", async () => {
    const found = await trial.findFollower();
    return found !== undefined && found !== lonely;
  });
}

async function untilDown({ address, client }: ClusterNode): Promise<void> {
  await until(`${address} tells that it is not ready`, async () => !(await client.isReady()), { timeoutMs: toldMs });
}

async function untilReady({ address, client }: ClusterNode): Promise<void> {
  await until(`${address} is ready`, () => client.isReady(), { timeoutMs: toldMs });
}
