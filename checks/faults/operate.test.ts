import { describe, expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { Cluster } from "../harness/cluster.ts";
import type { ClusterNode } from "../harness/cluster-node.ts";
import { HttpClient } from "../harness/http-client.ts";
import { hasPostgres, titleOf } from "../harness/postgres.ts";
import { createRandom, seedsOf } from "../harness/random.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";
import { Operated } from "./support/operated/operated.ts";
import type { Send } from "./support/operated/orders.ts";

const seeds = seedsOf("CHECKS_OPERATE_SEEDS", [20_261_123]);
const rounds = Number(process.env["CHECKS_KILL_ROUNDS"] ?? "2");
/** The longest round takes 30 s on a busy machine, and the final check a few minutes. */
const timeoutMs = 480_000 + 30_000 * rounds;
const quick = { STELE_CALLBACK_BACKOFF_MIN_MS: "20", STELE_CALLBACK_BACKOFF_MAX_MS: "100", STELE_LOG_LEVEL: "warn" };
const wait = { timeoutMs: 60_000 };

async function untilPublished(operated: Operated, count: number): Promise<void> {
  const due = operated.published + count;
  await until("events are published", () => operated.published >= due, wait);
}

/** Sends each request to a random running node, and tracks which nodes carry out an operator's order. */
class Nodes {
  readonly #cluster: Cluster;
  /** The nodes that carry out an order; a node is listed once for each order. */
  readonly #busy: ClusterNode[] = [];

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  readonly send: Send = async (request) => {
    const node = this.#cluster.random.pick(this.#cluster.running);
    const isOrder = request.method === "POST" && request.path.startsWith("/admin/");
    if (isOrder) this.#busy.push(node);
    try {
      return await node.client.http.send(request);
    } finally {
      if (isOrder) this.#busy.splice(this.#busy.indexOf(node), 1);
    }
  };

  /** A node to kill: one that carries out an order, or one that delivers a subscription. */
  async toKill(operated: Operated, what: "orders" | "delivers"): Promise<ClusterNode> {
    const { nodes, random, running } = this.#cluster;
    const address = what === "orders" ? undefined : await operated.findDeliverer();
    await until("an order is under way", () => what === "delivers" || this.#busy.length > 0, wait);
    return nodes.find((node) => node.address === address) ?? this.#busy[0] ?? random.pick(running);
  }
}

describe.each(seeds)("every operator order under load, seed %i", (seed) => {
  it(
    "kill -9 of the broker during operator orders: each event arrives in order, unless an operator skipped or discarded it",
    async () => {
      using folder = createTempFolder();
      const random = createRandom(seed);
      let broker: BrokerProcess | undefined;
      const send: Send = async (request) => {
        await using http = new HttpClient(broker?.url ?? "");
        return await http.send(request);
      };
      await using operated = await Operated.create(send, random);
      for (let round = 0; round <= rounds; round += 1) {
        broker = await startBroker({ dataDir: folder.path, env: quick });
        if (round === 0) await operated.subscribe();
        operated.start();
        if (round === rounds) break;
        await untilPublished(operated, 20 + random.below(40));
        await broker.kill();
        await operated.stop();
      }
      await operated.untilAllGiven();
      await operated.stop();
      await operated.check();
      expect((await broker?.stop())?.code).toBe(0);
    },
    timeoutMs,
  );

  it.runIf(hasPostgres)(
    titleOf(
      "kill -9 of the node that carries out an order, or that delivers: each event arrives in order, unless an operator skipped or discarded it",
    ),
    async () => {
      await using cluster = await Cluster.start({ env: quick, seed });
      const nodes = new Nodes(cluster);
      await using operated = await Operated.create(nodes.send, cluster.random);
      await operated.subscribe();
      operated.start();
      for (let round = 0; round < rounds; round += 1) {
        await untilPublished(operated, 20);
        const killed = await nodes.toKill(operated, round % 2 === 0 ? "orders" : "delivers");
        await killed.kill();
        await untilPublished(operated, 20);
        await killed.start();
      }
      await operated.untilAllGiven();
      await operated.stop();
      await operated.check();
      expect((await cluster.stop()).code).toBe(0);
    },
    timeoutMs,
  );
});
