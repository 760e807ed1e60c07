import { type BrokerProcess, type Exit, startBroker } from "./broker-process.ts";
import { Client } from "./client.ts";
import { createTempFolder } from "./temp-folder.ts";

/** Brokers on some chain. The behaviour suites are functions of a world, so that each world runs all of them. */
export interface World {
  readonly name: string;
  start(options?: WorldOptions): Promise<RunningWorld>;
}

export interface WorldOptions {
  /** Settings by environment name. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A broker that serves, with the clients a test needs. `client` is of the broker that runs now. */
export interface RunningWorld extends AsyncDisposable {
  readonly client: Client;
  readonly broker: BrokerProcess;
  /** Ends the broker as an operator does; its data stays. */
  stop(): Promise<Exit>;
  /** Starts it again on the same data. */
  resume(): Promise<void>;
}

/** One broker on the chain that it carries inside. */
export const embeddedWorld: World = {
  name: "embedded chain",
  start: async (options = {}) => {
    const world = new EmbeddedWorld(options);
    await world.resume();
    return world;
  },
};

class EmbeddedWorld implements RunningWorld {
  readonly #folder = createTempFolder();
  readonly #options: WorldOptions;
  #parts: { readonly broker: BrokerProcess; readonly client: Client } | undefined;

  constructor(options: WorldOptions) {
    this.#options = options;
  }

  get client(): Client {
    return this.#running.client;
  }

  get broker(): BrokerProcess {
    return this.#running.broker;
  }

  async stop(): Promise<Exit> {
    const { broker, client } = this.#running;
    this.#parts = undefined;
    await client[Symbol.asyncDispose]();
    return broker.stop();
  }

  async resume(): Promise<void> {
    const broker = await startBroker({ dataDir: this.#folder.path, ...this.#options });
    this.#parts = { broker, client: new Client(broker.url) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts?.client[Symbol.asyncDispose]();
    await this.#parts?.broker[Symbol.asyncDispose]();
    this.#folder[Symbol.dispose]();
  }

  get #running(): { readonly broker: BrokerProcess; readonly client: Client } {
    if (this.#parts === undefined) throw new Error("the broker is stopped");
    return this.#parts;
  }
}
