import { fileURLToPath } from "node:url";
import { startPostgres } from "../../../tools/postgres-server.mjs";
import { Anvil } from "./anvil.mjs";
import { chainSettings } from "./chain-group.mjs";
import { Child } from "./child.mjs";
import { readFamilyCpuSeconds } from "./proc.mjs";
import { createDataFolder, removeDataFolder, startBroker, startGuardedBroker } from "./servers.mjs";

const receiverScript = fileURLToPath(new URL("../callback-receiver.mjs", import.meta.url));
const pollMs = 100;

/** Nodes that share a PostgreSQL and an anvil, and a receiver of their callbacks. `nodes` has the running ones, by index. */
export class ClusterStack {
  nodes = new Map();
  postgres;
  receiver;
  receiverPort;
  #context;
  #guard;
  #anvil;
  #folders = new Map();

  constructor(context, guard) {
    this.#context = context;
    this.#guard = guard;
  }

  /**
   * @param {import("../run-figures.mjs").Context} context @param {number} count
   * @param {{ readonly access: object, readonly settings: Record<string, string> }} [guard] turns access on: then `nodes` has results of startGuardedBroker
   */
  static async start(context, count, guard) {
    const stack = new ClusterStack(context, guard);
    try {
      stack.postgres = await startPostgres({ settings: ["max_connections=200"] });
      stack.#anvil = await Anvil.start([]);
      stack.receiver = new Child([receiverScript], { ipc: true });
      [, stack.receiverPort] = await stack.receiver.waitFor(/listening on (\d+)/);
      await Promise.all(Array.from({ length: count }, (_, index) => stack.startNode(index)));
      return stack;
    } catch (error) {
      await stack.stop();
      throw error;
    }
  }

  /** Starts a node. A node that ran before gets its former data folder. */
  async startNode(index) {
    if (!this.#folders.has(index)) this.#folders.set(index, createDataFolder(this.#context.resultsDir));
    const settings = {
      ...chainSettings(this.#anvil, { keyIndex: index, group: { pollMs } }),
      STELE_DATABASE_URL: this.postgres.url(),
      STELE_ADVERTISED_ADDRESS: addressOf(index),
      // All subscriptions have the same receiver.
      STELE_CALLBACK_SUBSCRIPTIONS_PER_RECEIVER_MAX: "1000000",
    };
    const options = { main: this.#context.main, dataDir: this.#folders.get(index) };
    const node =
      this.#guard === undefined
        ? await startBroker({ ...options, settings })
        : await startGuardedBroker({
            ...options,
            access: this.#guard.access,
            settings: { ...settings, ...this.#guard.settings },
          });
    this.nodes.set(index, node);
  }

  async killNode(index) {
    const node = this.nodes.get(index);
    this.nodes.delete(index);
    await node.kill();
  }

  /** The port of a running node. Consecutive turns go through the nodes. */
  portOf(turn) {
    const nodes = [...this.nodes.values()];
    return nodes[turn % nodes.length].port;
  }

  /** How many subscriptions each node has, by the node's index. */
  async countSubscriptions() {
    const rows = await this.postgres.query(
      "select address, count(subscriptions.id) as count from nodes left join subscriptions on owner = node_id group by address",
    );
    return new Map(rows.map(({ address, count }) => [Number(/\d+/.exec(address)[0]), Number(count)]));
  }

  /** Processor time that each kind of process has used, in seconds. */
  readCpu() {
    return {
      nodes: [...this.nodes.values()].reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
      PostgreSQL: readFamilyCpuSeconds(this.postgres.pid),
      anvil: this.#anvil.cpuSeconds,
      receiver: readFamilyCpuSeconds(this.receiver.pid),
      load: process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6,
    };
  }

  async stop() {
    for (const node of this.nodes.values()) await (node.server ?? node).stop();
    await this.receiver?.stop();
    await this.#anvil?.stop();
    await this.postgres?.remove();
    for (const folder of this.#folders.values()) removeDataFolder(folder);
  }
}

function addressOf(index) {
  return `node-${index}:8080`;
}
