import type { ClusterNode } from "../../harness/cluster-node.ts";
import { until } from "../../harness/until.ts";
import type { ClusterScenario } from "./cluster-scenario.ts";

/** Until a node reports an outage: the time that a call waits for the answer, and the next look after that. */
const reportMs = 60_000;

/** Until another node than this one indexes. */
export async function untilAnother(scenario: ClusterScenario, lonely: ClusterNode): Promise<void> {
  await until("another node indexes", async () => {
    const found = await scenario.findFollower();
    return found !== undefined && found !== lonely;
  });
}

/** Until the node reports that it is not ready. */
export async function untilDown({ address, client }: ClusterNode): Promise<void> {
  await until(`${address} reports that it is not ready`, async () => !(await client.isReady()), {
    timeoutMs: reportMs,
  });
}

/** Until the node reports that it is ready. */
export async function untilReady({ address, client }: ClusterNode): Promise<void> {
  await until(`${address} is ready`, () => client.isReady(), { timeoutMs: reportMs });
}
