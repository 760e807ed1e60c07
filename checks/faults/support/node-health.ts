import type { ClusterNode } from "../../harness/cluster-node.ts";
import { until } from "../../harness/until.ts";
import type { ClusterScenario } from "./cluster-scenario.ts";

/** A node must report an outage, and the end of an outage, within this time: the timeout of a call, and the next check after it. */
const reportMs = 60_000;

/** Waits until a node other than `isolated` indexes. */
export async function untilAnotherIndexes(scenario: ClusterScenario, isolated: ClusterNode): Promise<void> {
  await until("another node indexes", async () => {
    const found = await scenario.findFollower();
    return found !== undefined && found !== isolated;
  });
}

/** Waits until the node reports that it is not ready. */
export async function untilDown({ address, client }: ClusterNode): Promise<void> {
  await until(`${address} reports that it is not ready`, async () => !(await client.isReady()), {
    timeoutMs: reportMs,
  });
}

/** Waits until the node reports that it is ready. */
export async function untilReady({ address, client }: ClusterNode): Promise<void> {
  await until(`${address} is ready`, () => client.isReady(), { timeoutMs: reportMs });
}
