import { type BrokerProcess, type Exit, startBroker } from "./broker-process.ts";
import { Client } from "./client.ts";
import type { TcpProxy } from "./tcp-proxy.ts";
import { until } from "./until.ts";

const readyMs = 60_000;

interface NodeParts {
  readonly address: string;
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly proxies: { readonly database: TcpProxy; readonly chain: TcpProxy };
}

/** One of the processes; it may be stopped and started again on its data. */
export class ClusterNode implements AsyncDisposable {
  /** What it says where clients reach it. */
  readonly address: string;
  readonly proxies: NodeParts["proxies"];
  readonly #parts: NodeParts;
  #isFrozen = false;
  #running: { readonly broker: BrokerProcess; readonly client: Client } | undefined;

  constructor(parts: NodeParts) {
    this.address = parts.address;
    this.proxies = parts.proxies;
    this.#parts = parts;
  }

  /** Also while it is frozen. */
  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  get isFrozen(): boolean {
    return this.#isFrozen;
  }

  get broker(): BrokerProcess {
    return this.#live.broker;
  }

  /** Asks this node and no other. */
  get client(): Client {
    return this.#live.client;
  }

  get url(): string {
    return this.broker.url;
  }

  /** How it is to be started, by whoever expects it not to come up. */
  get options(): { readonly dataDir: string; readonly env: Readonly<Record<string, string>> } {
    return { dataDir: this.#parts.dataDir, env: this.#parts.env };
  }

  /** Answers once it is ready. */
  async start(): Promise<void> {
    await this.launch();
    await until(`the node ${this.address} is ready`, () => this.client.isReady(), { timeoutMs: readyMs });
  }

  /** Answers once it serves; its group may not be up. */
  async launch(): Promise<void> {
    const broker = await startBroker(this.options);
    this.#running = { broker, client: new Client(broker.url) };
  }

  /** SIGTERM. */
  async stop(): Promise<Exit> {
    return this.#end((broker) => broker.stop());
  }

  /** SIGKILL. */
  async kill(): Promise<Exit> {
    return this.#end((broker) => broker.kill());
  }

  /** SIGSTOP. */
  freeze(): void {
    this.#isFrozen = true;
    this.broker.signal("SIGSTOP");
  }

  /** SIGCONT. */
  thaw(): void {
    this.#isFrozen = false;
    this.broker.signal("SIGCONT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isRunning) await this.kill();
    for (const proxy of Object.values(this.proxies)) await proxy[Symbol.asyncDispose]();
  }

  async #end(way: (broker: BrokerProcess) => Promise<Exit>): Promise<Exit> {
    const { broker, client } = this.#live;
    this.#running = undefined;
    this.#isFrozen = false;
    const exit = await way(broker);
    await client[Symbol.asyncDispose]();
    return exit;
  }

  get #live(): { readonly broker: BrokerProcess; readonly client: Client } {
    if (this.#running === undefined) throw new Error(`the node ${this.address} is stopped`);
    return this.#running;
  }
}
