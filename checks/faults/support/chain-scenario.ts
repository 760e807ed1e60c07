import { join } from "node:path";
import { topicRegistryAbi } from "@stele/contracts";
import { createPublicClient, http, parseEventLogs } from "viem";
import { expect } from "vitest";
import { type Anvil, type AnvilState, devKey, startAnvil } from "../../harness/anvil.ts";
import { type BrokerProcess, startBroker } from "../../harness/broker-process.ts";
import { Client, type EventBody } from "../../harness/client.ts";
import { type ChainGroup, groupsEnv } from "../../harness/group.ts";
import { type Receiver, startReceiver } from "../../harness/receiver.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";
import { until } from "../../harness/until.ts";
import { ChainProxy, pass } from "./chain-proxy.ts";
import { PublishLoad } from "./publish-load.ts";
import { removeStore } from "./remove-store.ts";
import { expectFound, expectGaplessSequences, expectMatchesLoad, replayAll } from "./replay.ts";

export interface ChainScenarioOptions {
  /** Fields of the broker's group. */
  readonly group?: Partial<Omit<ChainGroup, "id" | "endpoints" | "privateKey">>;
  /** Command-line flags of anvil. */
  readonly anvilArgs?: readonly string[];
}

interface ScenarioParts {
  readonly folder: TempFolder;
  readonly state: AnvilState;
  readonly anvil: Anvil;
  readonly proxy: ChainProxy;
  readonly receiver: Receiver;
}

const topics = ["f/a", "f/b"];
const blockTimeS = 0.5;
/** Shorter than the defaults, so that a scenario soon reaches timeouts and replacement transactions. */
const quick = { publishTimeoutMs: 6000, feeBumpAfterMs: 3000, pollMs: 100 };
const recoverMs = 60_000;
const quietMs = 3000;
/** Codes that publishes may return during a chain fault: transaction failed, chain unreachable, busy. */
const expectedCodes = [200_202, 200_205, 200_300];

/** A broker that reaches anvil through a proxy, with several publishers and a subscription to all topics. */
export class ChainScenario implements AsyncDisposable {
  readonly load = new PublishLoad(topics, { publishersPerTopic: 4 });
  readonly proxy: ChainProxy;
  readonly receiver: Receiver;
  readonly #options: ChainScenarioOptions;
  readonly #folder: TempFolder;
  readonly #state: AnvilState;
  #anvil: Anvil;
  #running: { readonly broker: BrokerProcess; readonly client: Client } | undefined;

  private constructor(options: ChainScenarioOptions, parts: ScenarioParts) {
    this.#options = options;
    this.#folder = parts.folder;
    this.#state = parts.state;
    this.#anvil = parts.anvil;
    this.proxy = parts.proxy;
    this.receiver = parts.receiver;
  }

  /** Starts everything and waits until events are published. */
  static async start(options: ChainScenarioOptions = {}): Promise<ChainScenario> {
    const scenario = await ChainScenario.prepare(options);
    try {
      await scenario.startBroker();
      await scenario.publish();
      return scenario;
    } catch (error) {
      await scenario[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Starts the chain and its proxy, but not the broker. */
  static async prepare(options: ChainScenarioOptions = {}): Promise<ChainScenario> {
    const folder = createTempFolder();
    const state = { file: join(folder.path, "anvil.json"), genesisTimeS: Math.floor(Date.now() / 1000) };
    const anvil = await startAnvil({ blockTimeS, state, args: options.anvilArgs ?? [] });
    const proxy = await ChainProxy.start(anvil.url);
    return new ChainScenario(options, { folder, state, anvil, proxy, receiver: await startReceiver() });
  }

  get anvil(): Anvil {
    return this.#anvil;
  }

  get broker(): BrokerProcess {
    return this.#live.broker;
  }

  get client(): Client {
    return this.#live.client;
  }

  /** Starts the broker on the scenario's data folder. The broker may not be ready yet. */
  async startBroker(): Promise<void> {
    const group = { id: "1", endpoints: [this.proxy.url], privateKey: devKey(0), ...quick, ...this.#options.group };
    const env = { ...groupsEnv([group]), STELE_LOG_LEVEL: "warn", STELE_SHUTDOWN_DEADLINE_MS: "5000" };
    const broker = await startBroker({ dataDir: this.#dataDir, env });
    this.#running = { broker, client: new Client(broker.url) };
  }

  /** Restarts the broker without its store, and so without its subscriptions. Then forgets the recorded callbacks, and subscribes again. */
  async restartWithoutStore(): Promise<void> {
    const { broker, client } = this.#live;
    await client[Symbol.asyncDispose]();
    expect((await broker.stop()).code).toBe(0);
    removeStore(this.#dataDir);
    await this.startBroker();
    await until("the broker is ready", () => this.client.isReady(), { timeoutMs: recoverMs });
    this.receiver.forget();
    await this.client.subscribe({ topic: "#", url: this.receiver.url, offset: "OFFSET_FIRST" });
  }

  get #dataDir(): string {
    return join(this.#folder.path, "data");
  }

  /** Opens the topics, subscribes to all of them, starts the load, and waits until 20 events are acknowledged. */
  async publish(): Promise<void> {
    await until("the broker is ready", () => this.client.isReady());
    for (const topic of topics) await this.client.open(topic);
    await this.client.subscribe({ topic: "#", url: this.receiver.url });
    this.load.start(this.broker.url);
    await this.untilAcknowledged(20);
  }

  /** Waits until this many more events are acknowledged. */
  async untilAcknowledged(count: number): Promise<void> {
    const before = this.load.acknowledged.size;
    await until(`${count} more events are acknowledged`, () => this.load.acknowledged.size >= before + count, {
      timeoutMs: recoverMs,
    }).catch((error: unknown) => {
      const tail = this.broker.stdout().split("\n").slice(-15).join("\n");
      throw new Error(`${String(error)}; last refusals: ${this.load.refusals.slice(-5).join(" ")}; log:\n${tail}`);
    });
  }

  /** Waits until this many more publishes have failed. */
  async untilRefused(count: number): Promise<void> {
    const before = this.load.refusals.length;
    await until(`${count} more publishes fail`, () => this.load.refusals.length >= before + count, {
      timeoutMs: recoverMs,
    });
  }

  /** Stops anvil cleanly, so that it saves the chain's state. */
  async stopChain(): Promise<void> {
    await this.#anvil.stop();
  }

  async resumeChain(args: readonly string[] = []): Promise<void> {
    this.#anvil = await startAnvil({ blockTimeS, state: this.#state, args });
    this.proxy.retarget(this.#anvil.url);
  }

  /**
   * Ends the fault and checks that
   * - publishing resumes by itself;
   * - the chain has every acknowledged event once, under its eventId, and no refused event;
   * - the subscription received all events in order.
   */
  async expectRecovered(): Promise<readonly EventBody[]> {
    this.proxy.treat(pass);
    await this.untilAcknowledged(20);
    await this.load.stop();
    await this.#untilQuiet();
    expect([...new Set(this.load.refused.values())].filter((code) => !expectedCodes.includes(code))).toEqual([]);
    const events = await replayAll(this.client);
    await expectGaplessSequences(this.client, events);
    expectMatchesLoad(events, this.load);
    await expectFound(this.client, this.load.acknowledged.values());
    const contents = new Set(events.map(({ content }) => Buffer.from(content, "base64").toString()));
    expect([...this.load.refused].filter(([content]) => contents.has(content))).toEqual([]);
    expect(await this.#countOnChain()).toBe(events.length);
    await this.receiver.waitForCount(events.length);
    expect(this.receiver.attempts.map(({ event }) => event.eventId)).toEqual(events.map(({ eventId }) => eventId));
    expect(await this.client.isReady()).toBe(true);
    return events;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.load.stop();
    await this.#running?.client[Symbol.asyncDispose]();
    await this.#running?.broker[Symbol.asyncDispose]();
    await this.proxy[Symbol.asyncDispose]();
    await this.#anvil.stop();
    await this.receiver[Symbol.asyncDispose]();
    this.#folder[Symbol.dispose]();
  }

  get #live(): { readonly broker: BrokerProcess; readonly client: Client } {
    if (this.#running === undefined) throw new Error("the broker is not started");
    return this.#running;
  }

  /** Waits until anvil's pool is empty and no event has come for a while. By then the chain has decided every publish that returned TIMEOUT. */
  async #untilQuiet(): Promise<void> {
    let block: unknown;
    let count = -1;
    let since = performance.now();
    await until(
      "the chain is quiet",
      async () => {
        const pool = (await this.#anvil.request("txpool_status")) as { pending: string; queued: string }; // Two counts.
        const newest = await this.#anvil.request("eth_blockNumber");
        const now = newest === block ? count : await this.#countOnChain();
        block = newest;
        if (now !== count || Number(pool.pending) + Number(pool.queued) > 0) since = performance.now();
        count = now;
        return performance.now() - since > quietMs;
      },
      { timeoutMs: recoverMs },
    );
  }

  /** Number of events on the chain, read without the broker. */
  async #countOnChain(): Promise<number> {
    const chain = createPublicClient({ transport: http(this.#anvil.url, { retryCount: 0 }) });
    const logs = parseEventLogs({
      abi: topicRegistryAbi,
      eventName: "EventsPublished",
      logs: await chain.getLogs({ fromBlock: 0n }),
    });
    return logs.reduce((sum, { args }) => sum + args.count, 0);
  }
}
