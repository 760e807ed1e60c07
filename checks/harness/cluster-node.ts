import { type BrokerProcess, type Exit, startBroker } from "./broker-process.ts";
import { Client } from "./client.ts";
import type { TcpProxy } from "./tcp-proxy.ts";
import { until } from "./until.ts";

const readyMs = 60_000;

interface NodeOptions {
  readonly address: string;
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly proxies: { readonly database: TcpProxy; readonly chain: TcpProxy };
}

/** A node, which a test can stop and restart on the same data. */
export class ClusterNode implements AsyncDisposable {
  /** The node's advertised address. */
  readonly address: string;
  readonly proxies: NodeOptions["proxies"];
  readonly #options: NodeOptions;
  #isFrozen = false;
  /** What the processes that have ended wrote to stdout. */
  #earlier = "";
  #running: { readonly broker: BrokerProcess; readonly client: Client } | undefined;

  constructor(options: NodeOptions) {
    this.address = options.address;
    this.proxies = options.proxies;
    this.#options = options;
  }

  /** Also true while the node is frozen. */
  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  get isFrozen(): boolean {
    return this.#isFrozen;
  }

  /** What all processes of this node wrote to stdout. */
  get stdout(): string {
    return this.#earlier + (this.#running?.broker.stdout() ?? "");
  }

  get broker(): BrokerProcess {
    return this.#live.broker;
  }

  /** A client of this node only. */
  get client(): Client {
    return this.#live.client;
  }

  get url(): string {
    return this.broker.url;
  }

  /** For a test that starts the broker of this node without `start`. */
  get options(): { readonly dataDir: string; readonly env: Readonly<Record<string, string>> } {
    return { dataDir: this.#options.dataDir, env: this.#options.env };
  }

  /** Starts the node and waits until it is ready. */
  async start(): Promise<void> {
    await this.launch();
    await until(`the node ${this.address} is ready`, () => this.client.isReady(), { timeoutMs: readyMs });
  }

  /** Starts the node and waits for its banner. Its group may not be ready yet. */
  async launch(): Promise<void> {
    const broker = await startBroker(this.options);
    this.#running = { broker, client: new Client(broker.url) };
  }

  /** Sends SIGTERM and waits for the exit. */
  async stop(): Promise<Exit> {
    return this.#end((broker) => broker.stop());
  }

  /** Sends SIGKILL and waits for the exit. */
  async kill(): Promise<Exit> {
    return this.#end((broker) => broker.kill());
  }

  /** Sends SIGSTOP: the process halts with its connections open. */
  freeze(): void {
    this.#isFrozen = true;
    this.broker.signal("SIGSTOP");
  }

  /** Sends SIGCONT: a frozen process continues. */
  thaw(): void {
    this.#isFrozen = false;
    this.broker.signal("SIGCONT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isRunning) await this.kill();
    for (const proxy of Object.values(this.proxies)) await proxy[Symbol.asyncDispose]();
  }

  async #end(stopBroker: (broker: BrokerProcess) => Promise<Exit>): Promise<Exit> {
    const { broker, client } = this.#live;
    this.#running = undefined;
    this.#isFrozen = false;
    const exit = await stopBroker(broker);
    this.#earlier += broker.stdout();
    await client[Symbol.asyncDispose]();
    return exit;
  }

  get #live(): { readonly broker: BrokerProcess; readonly client: Client } {
    if (this.#running === undefined) throw new Error(`the node ${this.address} is stopped`);
    return this.#running;
  }
}
