import { describe, it } from "vitest";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import { until } from "../../harness/until.ts";
import { useClusterTrial } from "../support/use-cluster-trial.ts";

const timeoutMs = 240_000;

describe.runIf(hasPostgres)(titleOf("three nodes under load"), () => {
  const atWork = useClusterTrial();

  it(
    "kill -9 of each in turn, each started again: nothing acknowledged is lost, and the others go on",
    async () => {
      const trial = await atWork();
      for (const node of trial.nodes) {
        await trial.harm(() => node.kill());
        await trial.untilToldOfMore();
        await trial.untilEven();
        await node.start();
        await trial.untilEven();
        await trial.untilToldOfMore();
      }
      await trial.verify();
    },
    timeoutMs,
  );

  it(
    "kill -9 of the one that indexes: another takes that over, and publishing goes on",
    async () => {
      const trial = await atWork();
      const follower = await until("a node indexes", () => trial.findFollower());
      await trial.harm(() => follower.kill());
      const next = await until("another indexes", async () => {
        const found = await trial.findFollower();
        return found !== undefined && found !== follower && found;
      });
      await trial.untilToldOfMore();
      // The same again, with one node left.
      await trial.harm(() => next.kill());
      await trial.untilToldOfMore();
      await trial.verify();
    },
    timeoutMs,
  );
});
