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
  /** Undefined where nobody records spans. */
  readonly tracing?: Tracing | undefined;
  readonly limits: EngineLimits;
  readonly extensionPrefix: string;
  readonly hasCoordinator: boolean;
  /** A faster keccak-256 than the one in JavaScript, to verify proofs with. */
  readonly keccak?: Keccak256 | undefined;
  /** `paused`: no callback is attempted, and everything else works. `active` if left out. */
  readonly deliveries?: "active" | "paused";
  /** The store keeps its copy of events for ever if left out. */
  readonly retentionMsOf?: RetentionOf | undefined;
  /** Undefined where this process has the store alone. */
  readonly cluster?: ClusterOptions | undefined;
  /** Memory of the process in bytes. Without it the engine keeps no figures: tests go through days of virtual time. */
  readonly readMemory?: (() => number) | undefined;
}

/** The engine with its lifecycle. */
export interface RunningBroker {
  /** What gateways call. */
  readonly calls: Broker;
  /** What operators ask by the admin API. */
  readonly operator: Operator;
  /** Orders that wait for receivers. `stop` ends them too, but then their callers may get no answer. */
  readonly runningOrders: Pick<RunningOrders, "stop">;
  /** Opens the store and the chains, indexes what is final by now, and resumes delivery. */
  start(): Promise<void>;
  /**
   * Ends a start in progress and the orders that call receivers, commits waiting publishes, ends delivery after the attempts in progress, writes the
   * cursors, hands everything to the other nodes, and closes. A step that fails does not keep the next ones from running. Aborts what takes longer
   * than `graceMs` in all. If nodes share the store, attempts get the time of a hand-over, and some time is reserved for leaving.
   */
  stop(graceMs: number): Promise<void>;
  /** Like `health` of the calls, for the process itself: without a check of rights. */
  groupHealth(): readonly GroupHealth[];
  /** Checks everything that each group holds once, without pauses, and repairs what is damaged. Call it after `start`. */
  scrub(): Promise<readonly ScrubReport[]>;
}
