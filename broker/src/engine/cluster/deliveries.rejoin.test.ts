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

interface Outage {
  readonly nodes: readonly number[];
  /** Time for which these nodes reach neither the coordinator nor the store, in milliseconds. */
  readonly cutMs: number;
}

/** Cuts nodes off after their receivers have accepted an event, and before the store knows. */
async function cutOff(ids: readonly string[], { nodes, cutMs }: Outage): Promise<void> {
  const gates = nodes.map((index) => cluster.node(index).gate);
  const published = cluster.publish(0, "a", "1");
  while (cluster.attempts.length < ids.length) await cluster.clock.advance(1);
  for (const gate of gates) gate.cut("refused");
  await published.catch(() => undefined);
  await cluster.clock.advance(cutMs);
  for (const gate of gates) gate.heal();
  await cluster.clock.advance(20_000);
  expect(nodes.filter((index) => cluster.node(index).ids.size === 1)).toEqual([]);
}

// A failed write of progress is retried within a second, and so is a failed join. The time of the return decides which of them comes first.
it.each([1, 3].flatMap((count) => [0, 500, 900].map((laterMs) => [count, laterMs] as const)))(
  "%i nodes repeat no accepted event if all lose their memberships and the store, and all return %i ms later",
  async (count, laterMs) => {
    const ids = await start(count);
    await cutOff(ids, { nodes: [...cluster.nodes.keys()], cutMs: membershipMs + laterMs });
    expect(ids.map((id) => cluster.sink.sequencesOf(id))).toEqual(ids.map(() => [1]));
  },
);

it.each([4_000, 4_800])(
  "one of three nodes repeats no accepted event if it alone is cut off for %i ms, and joins again before the others take over",
  async (cutMs) => {
    const ids = await start(3);
    await cluster.clock.advance(600);
    await cutOff(ids, { nodes: [1], cutMs });
    expect(ids.map((id) => cluster.sink.sequencesOf(id))).toEqual(ids.map(() => [1]));
  },
);
