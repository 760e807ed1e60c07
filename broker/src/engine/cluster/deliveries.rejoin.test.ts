import { afterEach, expect, it } from "vitest";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import { defaultEngineLimits } from "../limits.ts";
import { TestCluster } from "../testing/test-cluster.ts";

const { membershipMs } = defaultEngineLimits;
let cluster: TestCluster;
afterEach(() => cluster.stopAll());

/** Starts a node with one subscription, and returns its identifier. */
async function start(): Promise<string> {
  cluster = await TestCluster.start(1);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  return cluster.run(cluster.subscribe(0, "a"));
}

// A failed write of progress is retried within a second, and so is a failed join. The time of the return decides which of them comes first.
it.each([0, 900])(
  "repeats no accepted event if the node loses its membership and the store, and both return %s ms later",
  async (laterMs) => {
    const id = parseSubscriptionId(await start());
    await cluster.run(cluster.publish(0, "a", "1"));
    const { gate, ids } = cluster.node(0);
    gate.cut("refused");
    expect((await cluster.shared.store.findSubscription(id))?.notifiedCount).toBe(0);
    await cluster.clock.advance(membershipMs + laterMs);
    gate.heal();
    await cluster.clock.advance(20_000);
    expect(ids.size).toBeGreaterThan(1);
    expect(cluster.sink.sequencesOf(id)).toEqual([1]);
  },
);
