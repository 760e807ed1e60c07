import { defaultGroupId } from "../../domain/group-id.ts";
import { createMemoryLedger } from "../../ledger/memory/memory-ledger.ts";
import { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import { type Logger, silentLogger } from "../../lib/logger.ts";
import type { ChainCheck } from "../../ports/chain-check.ts";
import type { Ledger, LedgerLimits } from "../../ports/ledger.ts";
import { type Metrics, noMetrics } from "../../ports/metrics.ts";
import type { Store } from "../../ports/store.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { AuditLog } from "../../ports/audit-log.ts";
import type { KeyOptions } from "../access/create-access.ts";
import type { Policy } from "../access/policy.ts";
import type { SubscriptionStatus } from "../broker.ts";
import { createBroker } from "../create-broker.ts";
import type { RunningBroker } from "../engine-options.ts";
import { asCaller, type CalledBroker } from "./as-caller.ts";
import { defaultEngineLimits, type EngineLimits } from "../limits.ts";
import { publish } from "./publish.ts";
import { RecordingSink } from "./recording-sink.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import type { SubscribeCall } from "../subscribe-call.ts";

export interface TestEngineOptions {
  readonly chain?: MemoryChain;
  readonly limits?: Partial<EngineLimits>;
  /** Replaces the ledger's append. */
  readonly append?: Ledger["append"];
  /** Replaces the ledger's findProof. */
  readonly findProof?: Ledger["findProof"];
  readonly chainCheck?: ChainCheck;
  readonly ledgerLimits?: LedgerLimits;
  readonly hasCoordinator?: boolean;
  /** Allows reorgs of the chain; a block is final with this many blocks on top. */
  readonly confirmations?: number;
  readonly store?: Store;
  readonly metrics?: Metrics;
  readonly deliveries?: "active" | "paused";
  readonly policy?: Policy;
  readonly keys?: KeyOptions;
  readonly auditLog?: AuditLog;
  readonly logger?: Logger;
  /** How long the store keeps its copy of events, in milliseconds. */
  readonly retentionMs?: number;
  readonly readMemory?: () => number;
}

const graceMs = 1_000;

/** A broker on virtual time over a chain and a store in memory, which outlast its restarts. */
export class TestEngine {
  readonly clock = new VirtualClock();
  /** Numbers of the blocks whose hash the engine asked the chain for. */
  readonly hashesAsked: number[] = [];
  readonly sink = new RecordingSink();
  readonly chain: MemoryChain;
  readonly store: Store;
  running: RunningBroker;
  /** The same broker, called by `testCaller`. */
  broker: CalledBroker;
  /** The setting `deliveries` of the broker that is built next. */
  deliveries: "active" | "paused";
  /** Whether the broker that is built next is a restored copy. */
  isRestored = false;
  /** The setting `extensionPrefix` of the broker that is built next. */
  extensionPrefix = "svc-";
  /** Replaces the ledger's readCommitted. */
  readCommitted: Ledger["readCommitted"] | undefined;
  /** Replaces the ledger's readBlock. */
  readBlock: Ledger["readBlock"] | undefined;
  /** The ledger's own readCommitted. */
  readFromLedger: Ledger["readCommitted"] = async () => [];
  /** Whether the ledger reports that earlier transactions are settled. */
  settles = true;
  readonly #options: TestEngineOptions;
  #uuids = 0;

  constructor(options: TestEngineOptions = {}) {
    this.#options = options;
    this.chain = options.chain ?? new MemoryChain({ clock: this.clock });
    this.store = options.store ?? createMemoryStore();
    this.deliveries = options.deliveries ?? "active";
    this.running = this.#build();
    this.broker = asCaller(this.running);
  }

  static async start(options: TestEngineOptions = {}): Promise<TestEngine> {
    const engine = new TestEngine(options);
    await engine.broker.start();
    return engine;
  }

  /** Stops and builds a new broker on the same chain and store, not yet started. */
  async rebuild(): Promise<void> {
    await this.stop();
    this.running = this.#build();
    this.broker = asCaller(this.running);
  }

  async stop(): Promise<void> {
    const stopped = this.broker.stop(graceMs);
    await this.clock.advance(graceMs);
    await stopped;
  }

  publish(topic: string, text: string): Promise<string> {
    const content = new TextEncoder().encode(text);
    return publish(this.broker, { topic, groupId: undefined, content, extensions: [] }).then(
      (result) => result.eventId || result.status,
    );
  }

  /** Publishes `count` events one after the other. */
  async publishMany(topic: string, count: number): Promise<void> {
    for (let index = 0; index < count; index += 1) await this.publish(topic, `event ${index}`);
  }

  subscribe(topic: string, call: Partial<SubscribeCall> = {}): Promise<string> {
    return this.broker.subscribe({
      topic,
      groupId: undefined,
      url: "http://receiver/",
      format: "RESTful",
      subscriptionId: undefined,
      offset: undefined,
      secret: undefined,
      ...call,
    });
  }

  async listSubscriptions(): Promise<readonly SubscriptionStatus[]> {
    return (await this.broker.listSubscriptions()).flatMap(({ subscriptions }) => subscriptions);
  }

  #build(): RunningBroker {
    const { confirmations, ledgerLimits } = this.#options;
    const finality = { isFinal: confirmations === undefined, confirmations: confirmations ?? 0 };
    const ledger = createMemoryLedger({
      groupId: defaultGroupId,
      chain: this.chain,
      ...finality,
      ...(ledgerLimits === undefined ? {} : { limits: ledgerLimits }),
    });
    const findBlockHash = ledger.findBlockHash.bind(ledger);
    ledger.findBlockHash = async (blockNumber, signal) => {
      this.hashesAsked.push(blockNumber);
      return findBlockHash(blockNumber, signal);
    };
    const { append, findProof, chainCheck } = this.#options;
    if (append !== undefined) ledger.append = append;
    if (findProof !== undefined) ledger.findProof = findProof;
    if (chainCheck !== undefined) Object.assign(ledger, { chainCheck });
    this.readFromLedger = ledger.readCommitted.bind(ledger);
    ledger.readCommitted = (places, signal) => (this.readCommitted ?? this.readFromLedger)(places, signal);
    const readBlock = ledger.readBlock.bind(ledger);
    ledger.readBlock = (blockNumber, signal) => (this.readBlock ?? readBlock)(blockNumber, signal);
    const settled = ledger.settled.bind(ledger);
    ledger.settled = async (sender, signal) => (this.settles ? settled(sender, signal) : undefined);
    return createBroker({
      ledgers: [ledger],
      store: this.store,
      sink: this.sink,
      clock: this.clock,
      randomness: {
        fraction: () => 0.5,
        uuid: () => this.#nextUuid(),
        bytes: (count) => new Uint8Array(count).fill(7),
      },
      metrics: this.#options.metrics ?? noMetrics,
      logger: this.#options.logger ?? silentLogger,
      limits: { ...defaultEngineLimits, ...this.#options.limits },
      defaultGroupId,
      extensionPrefix: this.extensionPrefix,
      hasCoordinator: this.#options.hasCoordinator ?? true,
      deliveries: this.deliveries,
      isRestored: this.isRestored,
      policy: this.#options.policy,
      keys: this.#options.keys,
      retentionMsOf: () => this.#options.retentionMs ?? 0,
      readMemory: this.#options.readMemory,
      auditLog: this.#options.auditLog,
    });
  }

  #nextUuid(): string {
    this.#uuids += 1;
    return `00000000-0000-4000-8000-${String(this.#uuids).padStart(12, "0")}`;
  }
}
