import { describe, expect, it } from "vitest";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import { until } from "../../harness/until.ts";
import { untilAnother, untilDown, untilReady } from "../support/node-health.ts";
import { useClusterTrial } from "../support/use-cluster-trial.ts";

const timeoutMs = 240_000;

describe.runIf(hasPostgres)(titleOf("three nodes under load whose database fails"), () => {
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
});
