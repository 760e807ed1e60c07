import { type Anvil, devKey, startAnvil } from "./anvil.ts";
import { type BrokerProcess, type Exit, startBroker } from "./broker-process.ts";
import { Client } from "./client.ts";
import { groupsEnv } from "./group.ts";
import { createTempFolder } from "./temp-folder.ts";
import { until } from "./until.ts";

/** Brokers on some chain. The behaviour suites are functions of a world, so that each world runs all of them. */
export interface World {
  readonly name: string;
  /** Blocks come by the clock: each change takes its time, so tests that can, run at once. */
  readonly isSlow: boolean;
  /** Its calls go to several nodes, which share a database. */
  readonly isCluster?: boolean;
  /** Whether this machine has what it needs. */
  readonly isAvailable?: boolean;
  start(options?: WorldOptions): Promise<RunningWorld>;
  /** Ends what its brokers shared beyond their own lives. */
  close?(): Promise<void>;
}

export interface WorldOptions {
  /** Settings by environment name. */
  readonly env?: Readonly<Record<string, string>>;
  /** The advertised address of each node. */
  readonly addressOf?: (index: number) => string;
}

/** A broker that serves, with the clients a test needs. `client` is of the broker that runs now. */
export interface RunningWorld extends AsyncDisposable {
  readonly client: Client;
  /** The only process, or the first. */
  readonly broker: BrokerProcess;
  readonly brokers: readonly BrokerProcess[];
  /** Of each node as the listing has it, in the order of the text. */
  readonly addresses: readonly string[];
  /** The folder of its data. */
  readonly dataDir: string;
  /** Ends the broker as an operator does; its data stays, and a chain outside goes on. */
  stop(): Promise<Exit>;
  /** Starts it again on the same data. */
  resume(): Promise<void>;
}

/** One broker on the chain that it carries inside. */
export const embeddedWorld: World = {
  name: "embedded chain",
  isSlow: false,
  start: (options = {}) => startWorld(new BrokerWorld(options)),
};

export interface AnvilWorldOptions {
  /** Seconds between blocks; 0 makes a block of each transaction at once. */
  readonly blockTimeS: number;
  /** How the broker reaches the chain. */
  readonly protocol?: "http" | "ws";
}

/** Interval in which a broker asks an HTTP endpoint for new blocks. With the default of a second, tests would mostly wait for it. */
const pollMs = 20;

/** One broker on an anvil of its own, which goes on while the broker is stopped. */
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

/** A start that fails leaves nothing running. */
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
  #parts: { readonly broker: BrokerProcess; readonly client: Client } | undefined;

  constructor(options: WorldOptions, anvil?: Anvil) {
    this.#options = options;
    this.#anvil = anvil;
  }

  get client(): Client {
    return this.#running.client;
  }

  get broker(): BrokerProcess {
    return this.#running.broker;
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
    const { broker, client } = this.#running;
    this.#parts = undefined;
    await client[Symbol.asyncDispose]();
    return broker.stop();
  }

  async resume(): Promise<void> {
    const { env = {}, addressOf } = this.#options;
    const address = addressOf === undefined ? {} : { STELE_ADVERTISED_ADDRESS: addressOf(0) };
    const broker = await startBroker({ dataDir: this.dataDir, env: { ...env, ...address } });
    const client = new Client(broker.url);
    this.#parts = { broker, client };
    await until("the broker is ready", () => client.isReady());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts?.client[Symbol.asyncDispose]();
    await this.#parts?.broker[Symbol.asyncDispose]();
    await this.#anvil?.stop();
    this.#folder[Symbol.dispose]();
  }

  get #running(): { readonly broker: BrokerProcess; readonly client: Client } {
    if (this.#parts === undefined) throw new Error("the broker is stopped");
    return this.#parts;
  }
}
