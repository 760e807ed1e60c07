import { afterEach, expect, it } from "vitest";
import { defaultEngineLimits } from "../limits.ts";
import { TestCluster } from "../testing/test-cluster.ts";

const { membershipMs } = defaultEngineLimits;
let cluster: TestCluster;
afterEach(() => cluster.stopAll());

/** Starts nodes with four subscriptions each, and returns the identifiers of the subscriptions. */
async function start(count: number): Promise<readonly string[]> {
  cluster = await TestCluster.start(count);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const ids: string[] = [];
  while (ids.length < 4 * count) ids.push(await cluster.run(cluster.subscribe(0, "a")));
  await cluster.clock.advance(10_000);
  return ids;
}

// A failed write of progress is retried within a second, and so is a failed join. The time of the return decides which of them comes first.
it.each([1, 3].flatMap((count) => [0, 500, 900].map((laterMs) => [count, laterMs] as const)))(
  "%i nodes repeat no accepted event if all lose their memberships and the store, and all return %i ms later",
  async (count, laterMs) => {
    const ids = await start(count);
    const published = cluster.publish(0, "a", "1");
    while (cluster.attempts.length < ids.length) await cluster.clock.advance(1);
    for (const { gate } of cluster.nodes) gate.cut("refused");
    await published.catch(() => undefined);
    const rows = await cluster.shared.store.listSubscriptions();
    expect(rows.map((row) => row.notifiedCount)).toEqual(ids.map(() => 0));
    await cluster.clock.advance(membershipMs + laterMs);
    for (const { gate } of cluster.nodes) gate.heal();
    await cluster.clock.advance(20_000);
    expect(cluster.nodes.filter((node) => node.ids.size === 1)).toEqual([]);
    expect(ids.map((id) => cluster.sink.sequencesOf(id))).toEqual(ids.map(() => [1]));
  },
);
