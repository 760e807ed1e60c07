import { defaultGroupId } from "../../domain/group-id.ts";
import type { NodeId } from "../../domain/node.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import { createMemoryLedger } from "../../ledger/memory/memory-ledger.ts";
import { type Logger, silentLogger } from "../../lib/logger.ts";
import { createMonotonic } from "../../lib/system/clock.ts";
import type { Clock } from "../../ports/clock.ts";
import { type Coordinator, hintsAfterLoss } from "../../ports/coordinator.ts";
import type { Ledger } from "../../ports/ledger.ts";
import { noMetrics } from "../../ports/metrics.ts";
import type { Notification, Sink } from "../../ports/sink.ts";
import { createMemoryCluster, type MemoryCluster } from "../../store/memory/memory-cluster.ts";
import type { KeyOptions } from "../access/create-access.ts";
import type { Policy } from "../access/policy.ts";
import type { Broker } from "../broker.ts";
import { asCaller, type CalledBroker } from "./as-caller.ts";
import { createBroker } from "../create-broker.ts";
import { defaultEngineLimits, type EngineLimits } from "../limits.ts";
import { NodeGate } from "./node-gate.ts";
import { publish } from "./publish.ts";
import { RecordingSink } from "./recording-sink.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import type { SubscribeCall } from "../subscribe-call.ts";

export interface TestClusterOptions {
  readonly limits?: Partial<EngineLimits>;
  /** Delay of a message to or from the shared store, in milliseconds. The default is none. */
  readonly delayMs?: () => number;
  /** Changes the ledger of one node. By default it stays as it is. */
  readonly toLedger?: (ledger: Ledger, index: number) => Ledger;
  readonly policy?: Policy;
  readonly logger?: Logger;
  /** How long the store keeps its copies of events, in milliseconds. The default is for ever. */
  readonly retentionMs?: number;
  /** Keys of callers. Without `keys` and `policy`, everybody may do everything. */
  readonly keys?: KeyOptions;
}

/** An attempt that begins, with the row of its subscription at that moment. */
export interface BegunAttempt {
  readonly node: TestNode;
  readonly notification: Notification;
  readonly stored: Promise<Subscription | undefined>;
  /** When the attempt was sent. */
  readonly at: number;
}

const graceMs = 1_000;
/** Time after which a node has started if it can, in milliseconds. */
const startMs = 2_000;
const groupRecord = {
  chainId: 1,
  genesisHash: `0x${"00".repeat(32)}`,
  registryAddress: `0x${"00".repeat(20)}`,
} as const;

/** One process: it runs until it is stopped or killed. */
export interface TestNode {
  readonly address: string;
  readonly broker: CalledBroker;
  /** The same broker, for callers with API keys. */
  readonly calls: Broker;
  readonly gate: NodeGate;
  /** Every identifier under which the node tried to join. */
  readonly ids: ReadonlySet<NodeId>;
}

/** Several brokers in one process, on virtual time, over one store, coordinator and chain in memory. */
export class TestCluster {
  readonly clock = new VirtualClock();
  readonly sink = new RecordingSink();
  readonly chain = new MemoryChain({ clock: this.clock });
  readonly shared: MemoryCluster = createMemoryCluster({ clock: this.clock });
  readonly attempts: BegunAttempt[] = [];
  readonly #options: TestClusterOptions;
  readonly #nodes = new Map<string, TestNode>();
  /** How far the time of day of each machine is ahead, in milliseconds, by node. */
  readonly #aheadMs = new Map<number, number>();
  #uuids = 0;

  constructor(options: TestClusterOptions = {}) {
    this.#options = options;
  }

  /** Starts `count` nodes, at `node-0:1` and so on. */
  static async start(count: number, options: TestClusterOptions = {}): Promise<TestCluster> {
    const cluster = new TestCluster(options);
    for (let index = 0; index < count; index += 1) cluster.launch(index);
    await cluster.clock.advance(startMs);
    return cluster;
  }

  get nodes(): readonly TestNode[] {
    return [...this.#nodes.values()];
  }

  node(index: number): TestNode {
    const node = this.#nodes.get(addressOf(index));
    if (node === undefined) throw new Error(`node ${index} does not run`);
    return node;
  }

  find(index: number): TestNode | undefined {
    return this.#nodes.get(addressOf(index));
  }

  /** Starts a process without waiting for it. A process that cannot start is removed. */
  launch(index: number): TestNode {
    const node = this.#build(index);
    this.#nodes.set(node.address, node);
    node.broker.start().catch(() => {
      node.gate.kill();
      if (this.#nodes.get(node.address) === node) this.#nodes.delete(node.address);
    });
    return node;
  }

  kill(index: number): void {
    this.node(index).gate.kill();
    this.#nodes.delete(addressOf(index));
  }

  /** Makes everything work again. After `waitMs`, starts those of `count` nodes that do not run, for example because their start was cut off. */
  async recover(count: number, waitMs: number): Promise<void> {
    for (const { gate } of this.nodes) {
      gate.resume();
      gate.heal();
    }
    await this.clock.advance(waitMs);
    for (let index = 0; index < count; index += 1) if (this.find(index) === undefined) this.launch(index);
    await this.clock.advance(startMs);
  }

  /** Stops a node as SIGTERM does. The node is gone when this resolves. */
  async stop(index: number): Promise<void> {
    const node = this.node(index);
    this.#nodes.delete(addressOf(index));
    const stopped = node.broker.stop(graceMs).catch(() => undefined);
    await this.clock.advance(2 * graceMs);
    node.gate.resume();
    node.gate.heal();
    await this.clock.advance(graceMs);
    if (!node.gate.isKilled) await this.run(stopped);
  }

  async stopAll(): Promise<void> {
    const stopped = this.nodes.map(({ broker }) => broker.stop(graceMs).catch(() => undefined));
    await this.run(Promise.all(stopped));
    this.#nodes.clear();
  }

  /** Sets the time of day of one machine forward or back. */
  stepClock(index: number, ms: number): void {
    this.#aheadMs.set(index, (this.#aheadMs.get(index) ?? 0) + ms);
  }

  subscribe(index: number, topic: string, call: Partial<SubscribeCall> = {}): Promise<string> {
    return this.node(index).broker.subscribe({
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

  unSubscribe(index: number, subscriptionId: string): Promise<void> {
    return this.node(index).broker.unSubscribe({ subscriptionId });
  }

  async publish(index: number, topic: string, text: string): Promise<string> {
    const content = new TextEncoder().encode(text);
    const call = { topic, groupId: undefined, content, extensions: [] };
    const { eventId, status } = await publish(this.node(index).broker, call);
    return eventId || status;
  }

  /** Advances virtual time until `work` is done. */
  async run<T>(work: Promise<T>): Promise<T> {
    const state = { isDone: false };
    const ended = work.finally(() => void (state.isDone = true));
    ended.catch(() => undefined);
    await this.clock.settle();
    for (let waited = 0; !state.isDone && waited < 60_000; waited += 50) await this.clock.advance(50);
    return work;
  }

  /** Index of the node that follows the chain. */
  async findFollower(): Promise<number> {
    const [lease] = await this.shared.coordinator.listLeases();
    const index = this.nodes.findIndex(({ ids }) => lease !== undefined && ids.has(lease.nodeId));
    if (index < 0) throw new Error("no node follows the chain");
    return index;
  }

  /** Addresses of the owners, by subscription. */
  async owners(): Promise<ReadonlyMap<string, string | undefined>> {
    const rows = await this.shared.store.listSubscriptions();
    const addressOf = (owner: NodeId | undefined): string | undefined =>
      this.nodes.find(({ ids }) => owner !== undefined && ids.has(owner))?.address;
    return new Map(rows.map(({ id, owner }) => [id, addressOf(owner)]));
  }

  #build(index: number): TestNode {
    const address = addressOf(index);
    const gate = new NodeGate(this.clock, this.#options.delayMs ?? (() => 0));
    const ids = new Set<NodeId>();
    const coordinator = this.#coordinatorOf(gate, ids);
    const store = gate.wrap(this.shared.store, { isShared: true });
    let node: TestNode | undefined;
    const running = createBroker({
      ledgers: [this.#ledgerOf(gate, index)],
      store,
      sink: this.#sinkOf(gate, () => node),
      clock: this.#clockOf(gate, index),
      randomness: {
        fraction: () => 0.5,
        uuid: () => this.#nextUuid(),
        bytes: (count) => new Uint8Array(count).fill(7),
      },
      metrics: noMetrics,
      logger: this.#options.logger ?? silentLogger,
      limits: { ...defaultEngineLimits, ...this.#options.limits },
      policy: this.#options.policy,
      defaultGroupId,
      retentionMsOf: () => this.#options.retentionMs ?? 0,
      extensionPrefix: "svc-",
      hasCoordinator: true,
      keys: this.#options.keys,
      cluster: { coordinator, address, records: store },
    });
    node = { address, broker: asCaller(running), calls: running.calls, gate, ids };
    return node;
  }

  #clockOf({ clock }: NodeGate, index: number): Clock {
    const day = (): number => clock.now() + (this.#aheadMs.get(index) ?? 0);
    const timer = (): number => clock.monotonic();
    return { ...clock, now: day, monotonic: createMonotonic({ timer, day, uptime: timer }) };
  }

  #ledgerOf(gate: NodeGate, index: number): Ledger {
    const sender = `0x${String(index + 1).padStart(40, "0")}` as const;
    const ledger = createMemoryLedger({ groupId: defaultGroupId, chain: this.chain, isFinal: false, sender });
    const start = ledger.start.bind(ledger);
    ledger.start = async () => {
      await start();
      await this.shared.store.saveGroupRecord(defaultGroupId, groupRecord);
    };
    return gate.wrap(this.#options.toLedger?.(ledger, index) ?? ledger, { isShared: false });
  }

  #coordinatorOf(gate: NodeGate, ids: Set<NodeId>): Coordinator {
    const { coordinator } = this.shared;
    const gated = gate.wrap(coordinator, { isShared: true });
    const join: Coordinator["join"] = (node, lastsMs) => {
      ids.add(node.id);
      return gated.join(node, lastsMs);
    };
    const listen: Coordinator["listen"] = async (onHint) => {
      const unlisten = await coordinator.listen((hint) => gate.notify(() => onHint(hint)));
      const forget = gate.onHealed(() => hintsAfterLoss.forEach(onHint));
      return async () => {
        forget();
        await unlisten();
      };
    };
    return new Proxy(gated, {
      get: (_, name) => {
        if (name === "join") return join;
        return name === "listen" ? listen : (Reflect.get(gated, name) as unknown);
      },
    });
  }

  #sinkOf(gate: NodeGate, node: () => TestNode | undefined): Sink {
    const begin = (notification: Notification): void => {
      const from = node();
      if (from === undefined) throw new Error("an attempt before the node was built");
      const stored = this.shared.store.findSubscription(notification.subscription.id);
      this.attempts.push({ node: from, notification, stored, at: this.clock.now() });
    };
    const gated = gate.wrap(this.sink, { isShared: false });
    return {
      checkTarget: (target) => gated.checkTarget(target),
      test: (target, signal, mayStart) => gated.test(target, signal, mayStart),
      enter: (target, signal) => this.sink.enter(target, signal),
      stop: () => gated.stop(),
      attempt: (notification, signal, options) => {
        const mayStart = (): boolean => {
          const may = options?.mayStart?.() !== false;
          if (may && !gate.isKilled) begin(notification);
          return may;
        };
        return gated.attempt(notification, signal, { ...options, mayStart });
      },
    };
  }

  #nextUuid(): string {
    this.#uuids += 1;
    return `00000000-0000-4000-8000-${String(this.#uuids).padStart(12, "0")}`;
  }
}

function addressOf(index: number): string {
  return `node-${index}:1`;
}
