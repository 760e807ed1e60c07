import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Anvil, type AnvilState, devKey, startAnvil } from "./anvil.ts";
import type { Exit } from "./broker-process.ts";
import { Client } from "./client.ts";
import { ClusterNode } from "./cluster-node.ts";
import { findFreePort } from "./free-port.ts";
import { type ChainGroup, groupsEnv } from "./group.ts";
import { type Database, DatabaseServer } from "./postgres.ts";
import { createRandom, type Random } from "./random.ts";
import { SpreadClient } from "./spread-client.ts";
import { TcpProxy } from "./tcp-proxy.ts";
import { createTempFolder, type TempFolder } from "./temp-folder.ts";
import { until } from "./until.ts";

export interface ClusterOptions {
  /** Number of nodes; three by default. */
  readonly nodeCount?: number;
  /** Settings of every node by environment name. */
  readonly env?: Readonly<Record<string, string>>;
  /** Fields of the group. */
  readonly group?: Partial<Omit<ChainGroup, "endpoints" | "privateKey">>;
  /** Seconds between blocks. Without it, anvil makes a block for each transaction at once. */
  readonly blockTimeS?: number;
  /** Whether the chain node keeps its state when it stops. If so, its clock is up to a second behind. */
  readonly isChainKept?: boolean;
  /** How nodes reach the chain; HTTP by default. */
  readonly protocol?: "http" | "ws";
  /** The advertised address of each node; by default its port on the loopback address. */
  readonly addressOf?: (index: number) => string;
  /** The database that the nodes share; by default, the cluster starts a server for it. */
  readonly database?: Database;
  /** Seed of the cluster's `random`, which also picks a node for each call. */
  readonly seed?: number;
}

const nodeCountDefault = 3;
/** File of the key with which the nodes encrypt the secrets of subscriptions. */
const secretKeyName = "secrets.key";
const secretKey = "5e".repeat(32);
const seedDefault = 20_261_121;
/** Seconds between blocks after `killChain` found too many unsaved blocks, while it tries again. */
const slowBlockTimeS = 1;
/** Nothing listens on this port. Proxies connect to it while the chain node is down: the port of its next start is not known yet. */
const closedPort = 1;

interface ClusterContext {
  readonly folder: TempFolder;
  readonly anvilOptions: { readonly blockTimeS?: number; readonly state?: AnvilState };
  readonly database: Database;
  readonly random: Random;
}

/** Nodes that share a database and a chain. Each node reaches both through proxies that a test can cut. */
export class Cluster implements AsyncDisposable {
  readonly nodes: ClusterNode[] = [];
  readonly database: Database;
  readonly random: Random;
  readonly #options: ClusterOptions;
  readonly #context: ClusterContext;
  #anvil: Anvil | undefined;
  #client: Client | undefined;

  private constructor(options: ClusterOptions, context: ClusterContext) {
    this.#options = options;
    this.#context = context;
    this.database = context.database;
    this.random = context.random;
  }

  /** Starts the chain, the database and all nodes, and waits until every node is ready. A failed start leaves nothing running. */
  static async start(options: ClusterOptions = {}): Promise<Cluster> {
    const cluster = await Cluster.prepare(options);
    try {
      await cluster.resume();
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Starts the chain and the database, but no node. */
  static async prepare(options: ClusterOptions = {}): Promise<Cluster> {
    const { nodeCount = nodeCountDefault, seed = seedDefault, blockTimeS, isChainKept = false } = options;
    const folder = createTempFolder();
    const state = { file: join(folder.path, "anvil.json"), genesisTimeS: Math.floor(Date.now() / 1000) };
    const anvilOptions = {
      ...(blockTimeS === undefined ? {} : { blockTimeS }),
      ...(isChainKept ? { state } : {}),
    };
    const database = options.database ?? (await (await DatabaseServer.start()).createDatabase());
    const random = createRandom(seed);
    writeFileSync(join(folder.path, secretKeyName), secretKey, { mode: 0o600 });
    const cluster = new Cluster(options, { folder, anvilOptions, database, random });
    try {
      await cluster.resumeChain();
      for (let index = 0; index < nodeCount; index += 1) await cluster.addNode();
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  get anvil(): Anvil {
    if (this.#anvil === undefined) throw new Error("the chain is stopped");
    return this.#anvil;
  }

  /** A client that sends each call to a random node among those that ran when it was created. After `stop` or `resume`, this is a new client. */
  get client(): Client {
    this.#client ??= new Client(
      new SpreadClient(
        this.running.map(({ url }) => url),
        this.random,
      ),
    );
    return this.#client;
  }

  /** The running nodes. */
  get running(): readonly ClusterNode[] {
    return this.nodes.filter(({ isRunning }) => isRunning);
  }

  /** The addresses of all nodes, sorted. */
  get addresses(): readonly string[] {
    return this.nodes.map(({ address }) => address).toSorted();
  }

  /** Adds a node, by default with the next of anvil's keys, and does not start it. */
  async addNode(privateKey = devKey(this.nodes.length)): Promise<ClusterNode> {
    const { env = {}, group = {}, protocol = "http", addressOf } = this.#options;
    const index = this.nodes.length;
    const port = await findFreePort();
    const proxies = {
      database: await TcpProxy.start(this.database.server.port),
      chain: await TcpProxy.start(() => this.#anvil?.port ?? closedPort),
    };
    const address = addressOf?.(index) ?? `127.0.0.1:${port}`;
    const endpoints = [`${protocol}://127.0.0.1:${proxies.chain.port}`];
    const node = new ClusterNode({
      address,
      proxies,
      dataDir: join(this.#context.folder.path, `node-${index}`),
      env: {
        ...groupsEnv([{ id: "1", ...group, endpoints, privateKey }]),
        STELE_PORT: String(port),
        STELE_ADVERTISED_ADDRESS: address,
        STELE_SECRET_KEY_FILE: join(this.#context.folder.path, secretKeyName),
        STELE_DATABASE_URL: this.database.address(proxies.database.port),
        STELE_LOG_LEVEL: "warn",
        ...env,
      },
    });
    this.nodes.push(node);
    return node;
  }

  /** Starts all stopped nodes at once, and waits until they are ready. */
  async resume(): Promise<void> {
    await Promise.all(this.nodes.filter(({ isRunning }) => !isRunning).map((node) => node.start()));
    await this.#forgetClient();
  }

  /** Stops all nodes at once and cleanly. Returns the first exit whose code is not 0, else the first exit. */
  async stop(): Promise<Exit> {
    await this.#forgetClient();
    const exits = await Promise.all(this.running.map((node) => node.stop()));
    const [first = { code: 0, signal: null }] = exits;
    return exits.find(({ code }) => code !== 0) ?? first;
  }

  /** Stops the chain node cleanly: it loses its transaction pool, and its state unless `isChainKept` is set. */
  async stopChain(): Promise<void> {
    await this.#anvil?.stop();
    this.#anvil = undefined;
  }

  /** Kills the chain node when it has `lostMin` to `lostMax` unsaved blocks. It loses them and its transaction pool. */
  async killChain({ lostMin, lostMax }: { readonly lostMin: number; readonly lostMax: number }): Promise<void> {
    const { anvil } = this;
    const height = async (): Promise<number> => Number(await anvil.request("eth_blockNumber"));
    for (;;) {
      const saved = await height();
      await anvil.save();
      await until("the chain has unsaved blocks", async () => (await height()) >= saved + lostMin);
      // No block may come between the reading of the height and the kill.
      await anvil.request("evm_setIntervalMining", [0]);
      if ((await height()) <= saved + lostMax) break;
      await anvil.request("evm_setIntervalMining", [slowBlockTimeS]);
    }
    await anvil.kill();
    this.#anvil = undefined;
  }

  /** Starts the chain node, from its saved state if it has one. */
  async resumeChain(): Promise<void> {
    this.#anvil ??= await startAnvil(this.#context.anvilOptions);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#forgetClient();
    for (const node of this.nodes) await node[Symbol.asyncDispose]();
    await this.stopChain();
    if (this.#options.database === undefined) await this.database.server[Symbol.asyncDispose]();
    this.#context.folder[Symbol.dispose]();
  }

  async #forgetClient(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.[Symbol.asyncDispose]();
  }
}
