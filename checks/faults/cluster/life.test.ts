import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runBroker } from "../../harness/broker-process.ts";
import { Cluster } from "../../harness/cluster.ts";
import { devKey } from "../../harness/anvil.ts";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import { until } from "../../harness/until.ts";
import { ClusterScenario } from "../support/cluster-scenario.ts";

const timeoutMs = 240_000;

describe.runIf(hasPostgres)(titleOf("nodes that come and go"), () => {
  it(
    "SIGTERM and restart of each node in turn under load: no event is lost or repeated, and every publish succeeds by the second try",
    async () => {
      // A stopping node hands over at once. If the others waited for this time instead, the test would time out.
      await using scenario = await ClusterScenario.start({ env: { STELE_TAKE_OVER_AFTER_MS: "600000" } });
      for (const node of scenario.nodes) {
        expect(await node.stop()).toEqual(expect.objectContaining({ code: 0, signal: null }));
        await scenario.untilEven();
        await scenario.untilNotifiedOfMore();
        await node.start();
        await scenario.untilEven();
        await scenario.untilNotifiedOfMore();
      }
      scenario.expectNoFailure();
      expect(await scenario.verify()).toBe(0);
    },
    timeoutMs,
  );
});

describe.runIf(hasPostgres)(titleOf("node starts"), () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start();
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  it("three nodes that start at once on a new chain and an empty database create one registry and one set of tables", async () => {
    expect(await cluster.database.query("select count(*) from schema_version")).toEqual([{ count: "1" }]);
    expect(await countCreations(cluster)).toBe(1);
    const registries = await Promise.all(cluster.nodes.map(async ({ client }) => readGroup(client)));
    expect(new Set(registries.map(({ registry }) => registry)).size).toBe(1);
    expect(new Set(registries.map(({ signer }) => signer)).size).toBe(3);
    await cluster.nodes[0]?.client.open("seen by all");
    for (const { client } of cluster.nodes) expect(await client.exist("seen by all")).toBe(true);
  });

  it("a node with the signer of another node is not ready and names that node, until that node leaves", async () => {
    const [first] = cluster.nodes;
    const second = await cluster.addNode(devKey(0));
    await second.launch();
    const answer = await second.client.http.send({ method: "GET", path: "/health/ready" });
    expect(answer.status).toBe(503);
    expect(answer.text).toContain(first?.address);
    await first?.stop();
    await until("the second node is ready", () => second.client.isReady());
    expect((await cluster.stop()).code).toBe(0);
  });

  it("a node that cannot reach its database exits with 1 and an error about the database", async () => {
    const [node] = cluster.nodes;
    await cluster.database.server.kill();
    const run = await runBroker(node?.options ?? {});
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(/database/i);
    await cluster.database.server.resume();
    await node?.start();
  });
});

interface GroupFacts {
  readonly registry: string;
  readonly signer: string;
}

async function readGroup(client: Cluster["client"]): Promise<GroupFacts> {
  const answer = await client.http.send({ method: "GET", path: "/health/ready" });
  // The gateway's tests check the shape.
  const { groups } = answer.json() as { groups: readonly { chain: GroupFacts }[] };
  const [group] = groups;
  if (group === undefined) throw new Error(`no group: ${answer.text}`);
  return group.chain;
}

/** Number of transactions that created a contract. */
async function countCreations(cluster: Cluster): Promise<number> {
  const head = Number(await cluster.anvil.request("eth_blockNumber"));
  let count = 0;
  for (let number = 0; number <= head; number += 1) {
    const block = await cluster.anvil.request("eth_getBlockByNumber", [`0x${number.toString(16)}`, true]);
    // The request asked for whole transactions.
    const { transactions } = block as { transactions: readonly { to: string | null }[] };
    count += transactions.filter(({ to }) => to === null).length;
  }
  return count;
}
