import type { Keccak256 } from "@stele/eth";
import type { Coordinator } from "../ports/coordinator.ts";
import type { GroupRecords } from "../ports/group-records.ts";
import type { Ledger } from "../ports/ledger.ts";
import type { Metrics } from "../ports/metrics.ts";
import type { Randomness } from "../ports/randomness.ts";
import type { Sink } from "../ports/sink.ts";
import type { Store } from "../ports/store.ts";
import type { Tracing } from "../ports/tracing.ts";
import type { AccessOptions } from "./access/create-access.ts";
import type { Broker, GroupHealth } from "./broker.ts";
import type { GroupLifeOptions } from "./group-life.ts";
import type { ScrubReport } from "./integrity/scrubber.ts";
import type { EngineLimits } from "./limits.ts";
import type { Operator } from "./operate/operator.ts";
import type { RunningOrders } from "./operate/running-orders.ts";
import type { RetentionOf } from "./retention/create-retention.ts";

/** What a node needs to share its store with others. */
export interface ClusterOptions {
  readonly coordinator: Coordinator;
  /** Where clients reach this node, host:port; unique among the nodes. */
  readonly address: string;
  readonly records: Pick<GroupRecords, "findGroupRecord">;
}

/** The engine's ports and settings. */
export interface EngineOptions extends Pick<GroupLifeOptions, "processTrouble">, AccessOptions {
  readonly ledgers: readonly Ledger[];
  readonly store: Store;
  readonly sink: Sink;
  readonly randomness: Randomness;
  readonly metrics: Metrics;
  /** Undefined if spans are not recorded. */
  readonly tracing?: Tracing | undefined;
  readonly limits: EngineLimits;
  readonly extensionPrefix: string;
  readonly hasCoordinator: boolean;
  /** A faster keccak-256 than the one in JavaScript, to verify proofs with. */
  readonly keccak?: Keccak256 | undefined;
  /** `paused`: no callback is attempted, and everything else works. `active` if left out. */
  readonly deliveries?: "active" | "paused";
  /** Whether the broker is a restored copy for inspection: it publishes no will and ends no session that it finds in the store. */
  readonly isRestored?: boolean;
  /** The store keeps its copy of events for ever if left out. */
  readonly retentionMsOf?: RetentionOf | undefined;
  /** Undefined if the broker is a single node. */
  readonly cluster?: ClusterOptions | undefined;
  /** Reads the memory of the process in bytes. Tests that run through days of virtual time leave it out: then the engine measures nothing periodically. */
  readonly readMemory?: (() => number) | undefined;
}

/** How long a part that hangs delays a stop after its deadline, in milliseconds. */
export const hungMsMax = 2_000;

/** The engine with its lifecycle. */
export interface RunningBroker {
  /** The calls of gateways. */
  readonly calls: Broker;
  /** The calls of the admin API. */
  readonly operator: Operator;
  /** Operators' orders that wait for receivers. {@link stop} ends these orders too, but their callers may then get no answer. */
  readonly runningOrders: Pick<RunningOrders, "stop">;
  /** Opens the store and the chains, indexes final blocks, and resumes delivery. Groups that take longer than `startWaitMs` come up after it resolves. */
  start(): Promise<void>;
  /**
   * Ends a start in progress and the orders that call receivers, commits waiting publishes, ends delivery after the attempts in progress, writes the
   * cursors, hands subscriptions and leases over to the other nodes, and closes. If a step fails, the next ones still run. All steps together get `graceMs`;
   * then the rest is aborted. If nodes share the store, attempts in progress get only the time of a hand-over, and some time is reserved for leaving.
   * @throws the first failure of a step; Error that names a step that hangs `hungMsMax` longer than `graceMs`.
   */
  stop(graceMs: number): Promise<void>;
  /** Like `calls.health`, but without a check of rights. */
  groupHealth(): readonly GroupHealth[];
  /** Checks all stored data of each group once, without pauses, and repairs damage. Reports each part as it ends. Call it after `start`. */
  scrub(report: (ended: ScrubReport) => void): Promise<void>;
}
