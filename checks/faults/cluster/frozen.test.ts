import { describe, expect, it } from "vitest";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import { until } from "../../harness/until.ts";
import { ClusterScenario } from "../support/cluster-scenario.ts";
import type { WatchedSubscription } from "../support/watched-subscription.ts";

const timeoutMs = 240_000;
/** Events of each topic that a burst publishes, so that events wait when a node freezes. */
const burstEvents = 60;
const slowMs = 40;
const topics = ["c/a", "c/b", "c/d"];

describe.runIf(hasPostgres)(titleOf("a node that does not know that others took over"), () => {
  it(
    "SIGSTOP until others have taken over, then SIGCONT: the node sends at most one attempt, writes no cursor, and joins again",
    async () => {
      await using scenario = await ClusterScenario.start();
      const zombie = await until("a node indexes", () => scenario.findFollower());
      const nodeId = await scenario.findNodeId(zombie);
      const owned = await scenario.listSubscriptionsOf(zombie);
      expect(owned.length).toBeGreaterThanOrEqual(3);
      await letWait(scenario, owned);
      await scenario.runFault(async () => {
        zombie.freeze();
        await until("others have the frozen node's subscriptions", async () => {
          const held = await Promise.all(
            scenario.nodes.filter((node) => node !== zombie).map((node) => scenario.listSubscriptionsOf(node)),
          );
          const ids = held.flat().map(({ id }) => id);
          return owned.every(({ id }) => ids.includes(id));
        });
        scenario.slowDown();
        await scenario.untilNotifiedOfMore();
        zombie.thaw();
        await until("the node has joined again", async () => {
          const found = await scenario.findNodeId(zombie);
          return found !== undefined && found !== nodeId;
        });
        await scenario.untilEven();
      });
      // If the node froze after it had checked the clock and before it sent an event, it makes this one attempt after the thaw.
      await scenario.verify({ strayMax: 1 });
    },
    timeoutMs,
  );

  it(
    "the node's membership is deleted, and others take over: the database refuses the node's writes, and the node joins again",
    async () => {
      // A node renews its membership three times in this period.
      await using scenario = await ClusterScenario.start({ env: { STELE_TAKE_OVER_AFTER_MS: "12000" } });
      for (const node of scenario.nodes) {
        const nodeId = await scenario.findNodeId(node);
        await letWait(scenario, await scenario.listSubscriptionsOf(node));
        await scenario.runFault(async () => {
          await scenario.cluster.database.query("delete from nodes where node_id = $1", [nodeId]);
          await until("the node has joined again", async () => {
            const found = await scenario.findNodeId(node);
            return found !== undefined && found !== nodeId;
          });
          await scenario.untilEven();
        });
      }
      scenario.slowDown();
      // Until its next renewal, the node cannot know that it lost its subscriptions.
      await scenario.verify({ strayMax: Number.POSITIVE_INFINITY });
    },
    timeoutMs,
  );
});

/** Slows down all receivers, publishes many events, and waits until each of these subscriptions has made an attempt. */
async function letWait(scenario: ClusterScenario, subscriptions: readonly WatchedSubscription[]): Promise<void> {
  const counts = subscriptions.map(({ receiver }) => receiver.attempts.length);
  scenario.slowDown(slowMs);
  await Promise.all(topics.map((topic) => scenario.load.burst(topic, burstEvents)));
  await until("the node delivers the waiting events", () =>
    subscriptions.every(({ receiver }, index) => receiver.attempts.length > (counts[index] ?? 0)),
  );
}
