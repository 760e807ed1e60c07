import type { BrokerProcess, Exit } from "./broker-process.ts";
import type { Client } from "./client.ts";
import { Cluster } from "./cluster.ts";
import { DatabaseServer, hasPostgres, titleOf } from "./postgres.ts";
import { seedsOf } from "./random.ts";
import type { RunningWorld, World } from "./world.ts";

const nodeCount = 3;

/** Nodes that share one anvil and one PostgreSQL. Each call goes to a random node. */
export function clusterWorld(): World {
  const [seed = 0] = seedsOf("CHECKS_CLUSTER_SEEDS", [Date.now() % 1_000_000_000]);
  let server: Promise<DatabaseServer> | undefined;
  return {
    name: titleOf(`${nodeCount} nodes on PostgreSQL and anvil with instant blocks, calls spread by seed ${seed}`),
    isSlow: false,
    isCluster: true,
    isAvailable: hasPostgres,
    start: async ({ env = {}, ...options } = {}) => {
      server ??= DatabaseServer.start();
      const database = await (await server).createDatabase();
      const group = { id: env["STELE_DEFAULT_GROUP"] ?? "1" };
      return new ClusterWorld(
        await Cluster.start({ ...options, nodeCount, env, group, protocol: "ws", database, seed }),
      );
    },
    close: async () => {
      await (await server)?.[Symbol.asyncDispose]();
      server = undefined;
    },
  };
}

class ClusterWorld implements RunningWorld {
  readonly #cluster: Cluster;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  get client(): Client {
    return this.#cluster.client;
  }

  get broker(): BrokerProcess {
    return this.brokers[0] ?? missing();
  }

  get brokers(): readonly BrokerProcess[] {
    return this.#cluster.running.map(({ broker }) => broker);
  }

  get addresses(): readonly string[] {
    return this.#cluster.addresses;
  }

  get dataDir(): string {
    throw new Error("each node has a data folder of its own");
  }

  stop(): Promise<Exit> {
    return this.#cluster.stop();
  }

  resume(): Promise<void> {
    return this.#cluster.resume();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cluster[Symbol.asyncDispose]();
  }
}

function missing(): never {
  throw new Error("the nodes are stopped");
}
