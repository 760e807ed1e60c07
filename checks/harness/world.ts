import { type Anvil, devKey, startAnvil } from "./anvil.ts";
import { type BrokerProcess, type Exit, startBroker } from "./broker-process.ts";
import { Client } from "./client.ts";
import { groupsEnv } from "./group.ts";
import { createTempFolder } from "./temp-folder.ts";
import { until } from "./until.ts";

/** Starts brokers on one kind of chain. The behaviour suites are functions of a world, so that each world runs all of them. */
export interface World {
  readonly name: string;
  /** The chain makes blocks at intervals, so each change takes a while. Therefore independent tests run concurrently. */
  readonly isSlow: boolean;
  /** Calls go to several nodes that share a database. */
  readonly isCluster?: boolean;
  /** Whether this machine has the programs that the world needs. */
  readonly isAvailable?: boolean;
  start(options?: WorldOptions): Promise<RunningWorld>;
  /** Stops the servers that the world's brokers shared. */
  close?(): Promise<void>;
}

export interface WorldOptions {
  /** Settings by environment name. */
  readonly env?: Readonly<Record<string, string>>;
  /** The advertised address of each node. */
  readonly addressOf?: (index: number) => string;
}

/** A running broker and its client. After `resume`, both are new. */
export interface RunningWorld extends AsyncDisposable {
  readonly client: Client;
  /** The only broker, or the first node. */
  readonly broker: BrokerProcess;
  readonly brokers: readonly BrokerProcess[];
  /** Address of each node as in the admin listing, sorted. */
  readonly addresses: readonly string[];
  /** The broker's data folder. @throws Error in a cluster, where each node has its own. */
  readonly dataDir: string;
  /** Stops the broker as an operator does. Its data remains, and an external chain keeps running. */
  stop(): Promise<Exit>;
  /** Restarts the broker on the same data. */
  resume(): Promise<void>;
}

/** One broker with its embedded chain. */
export const embeddedWorld: World = {
  name: "embedded chain",
  isSlow: false,
  start: (options = {}) => startWorld(new BrokerWorld(options)),
};

export interface AnvilWorldOptions {
  /** Seconds between blocks; with 0, anvil makes a block for each transaction at once. */
  readonly blockTimeS: number;
  /** How the broker reaches the chain. */
  readonly protocol?: "http" | "ws";
}

/** Interval between polls of an HTTP endpoint, in milliseconds. With the broker's default of a second, tests would spend most of their time waiting. */
const pollMs = 20;

/** One broker on an anvil of its own, which keeps running while the broker is stopped. */
export function anvilWorld({ blockTimeS, protocol = "http" }: AnvilWorldOptions): World {
  const pace = blockTimeS === 0 ? "instant blocks" : `${blockTimeS} s blocks`;
  return {
    name: `anvil with ${pace}`,
    isSlow: blockTimeS > 0,
    start: async ({ env = {}, ...options } = {}) => {
      const anvil = await startAnvil(blockTimeS === 0 ? {} : { blockTimeS });
      const url = anvil.url.replace("http:", `${protocol}:`);
      const id = env["STELE_DEFAULT_GROUP"] ?? "1";
      const groups = groupsEnv([{ id, endpoints: [url], privateKey: devKey(0), pollMs }]);
      return startWorld(new BrokerWorld({ ...options, env: { ...groups, ...env } }, anvil));
    },
  };
}

/** Starts the world's broker. If that fails, stops everything else that the world started. */
async function startWorld(world: RunningWorld): Promise<RunningWorld> {
  try {
    await world.resume();
    return world;
  } catch (error) {
    await world[Symbol.asyncDispose]();
    throw error;
  }
}

class BrokerWorld implements RunningWorld {
  readonly #folder = createTempFolder();
  readonly #options: WorldOptions;
  readonly #anvil: Anvil | undefined;
  #running: { readonly broker: BrokerProcess; readonly client: Client } | undefined;

  constructor(options: WorldOptions, anvil?: Anvil) {
    this.#options = options;
    this.#anvil = anvil;
  }

  get client(): Client {
    return this.#live.client;
  }

  get broker(): BrokerProcess {
    return this.#live.broker;
  }

  get brokers(): readonly BrokerProcess[] {
    return [this.broker];
  }

  get addresses(): readonly string[] {
    return [this.#options.addressOf?.(0) ?? new URL(this.broker.url).host];
  }

  get dataDir(): string {
    return this.#folder.path;
  }

  async stop(): Promise<Exit> {
    const { broker, client } = this.#live;
    this.#running = undefined;
    await client[Symbol.asyncDispose]();
    return broker.stop();
  }

  async resume(): Promise<void> {
    const { env = {}, addressOf } = this.#options;
    const address = addressOf === undefined ? {} : { STELE_ADVERTISED_ADDRESS: addressOf(0) };
    const broker = await startBroker({ dataDir: this.dataDir, env: { ...env, ...address } });
    const client = new Client(broker.url);
    this.#running = { broker, client };
    await until("the broker is ready", () => client.isReady());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running?.client[Symbol.asyncDispose]();
    await this.#running?.broker[Symbol.asyncDispose]();
    await this.#anvil?.stop();
    this.#folder[Symbol.dispose]();
  }

  get #live(): { readonly broker: BrokerProcess; readonly client: Client } {
    if (this.#running === undefined) throw new Error("the broker is stopped");
    return this.#running;
  }
}
