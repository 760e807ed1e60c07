import { describe, expect, it } from "vitest";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import { until } from "../../harness/until.ts";
import { ClusterTrial } from "../support/cluster-trial.ts";
import type { WatchedSubscription } from "../support/watched-subscription.ts";

const timeoutMs = 240_000;
/** So many events wait at each subscription when a node is frozen. */
const waitingEvents = 60;
const slowMs = 40;
const topics = ["c/a", "c/b", "c/d"];

describe.runIf(hasPostgres)(titleOf("a node that does not know that it has lost everything"), () => {
  it(
    "SIGSTOP until others have taken over, and SIGCONT: it neither delivers on what it held nor writes a cursor, and joins again",
    async () => {
      await using trial = await ClusterTrial.start();
      const zombie = await until("a node indexes", () => trial.findFollower());
      const nodeId = await trial.findNodeId(zombie);
      const owned = await trial.listOf(zombie);
      expect(owned.length).toBeGreaterThanOrEqual(3);
      await letWait(trial, owned);
      await trial.harm(async () => {
        zombie.freeze();
        await until("others have what it had", async () => {
          const held = await Promise.all(
            trial.nodes.filter((node) => node !== zombie).map((node) => trial.listOf(node)),
          );
          const ids = held.flat().map(({ id }) => id);
          return owned.every(({ id }) => ids.includes(id));
        });
        trial.slowDown();
        await trial.untilToldOfMore();
        zombie.thaw();
        await until("it has joined again", async () => {
          const found = await trial.findNodeId(zombie);
          return found !== undefined && found !== nodeId;
        });
        await trial.untilEven();
      });
      // One attempt at most can have been between the look at the clock and its sending.
      await trial.verify({ strayMax: 1 });
    },
    timeoutMs,
  );

  it(
    "others take over while it believes itself a member: its writes are refused, and it joins again",
    async () => {
      // It asks each third of that whether it still is one.
      await using trial = await ClusterTrial.start({ env: { STELE_TAKE_OVER_AFTER_MS: "12000" } });
      for (const node of trial.nodes) {
        const nodeId = await trial.findNodeId(node);
        await letWait(trial, await trial.listOf(node));
        await trial.harm(async () => {
          await trial.cluster.database.query("delete from nodes where node_id = $1", [nodeId]);
          await until("it has joined again", async () => {
            const found = await trial.findNodeId(node);
            return found !== undefined && found !== nodeId;
          });
          await trial.untilEven();
        });
      }
      trial.slowDown();
      // Until it asks, it cannot know.
      await trial.verify({ strayMax: Number.POSITIVE_INFINITY });
    },
    timeoutMs,
  );
});

/** Until each of these subscriptions has many events before it and is being told of them. */
async function letWait(trial: ClusterTrial, subscriptions: readonly WatchedSubscription[]): Promise<void> {
  const counts = subscriptions.map(({ receiver }) => receiver.attempts.length);
  trial.slowDown(slowMs);
  await Promise.all(topics.map((topic) => trial.load.burst(topic, waitingEvents)));
  await until("it delivers what waits", () =>
    subscriptions.every(({ receiver }, index) => receiver.attempts.length > (counts[index] ?? 0)),
  );
}
