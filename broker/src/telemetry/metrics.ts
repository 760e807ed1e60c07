import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { createMqttMetrics, type MqttCounters } from "./mqtt-metrics.ts";
import { createStompMetrics, type StompCounters } from "./stomp-metrics.ts";
import { createTailMetrics, type TailCounters } from "./tail-metrics.ts";
import type { CallbackGauge, GroupGauge, Metrics, NodeGauge, ScrubPart } from "../ports/metrics.ts";
import { createDeadLetterMetrics } from "./dead-letter-metrics.ts";
import { createHttpConnections } from "./http-connections.ts";
import { type DiskGauge, watchDisk } from "./disk-metrics.ts";
import type { SkipReason } from "../ports/store.ts";
import { createIntegrityMetrics } from "./integrity-metrics.ts";
import { createRetentionMetrics } from "./retention-metrics.ts";

/** Metrics in the text format of Prometheus. */
export interface MetricsRegistry extends Metrics {
  readonly contentType: string;
  readonly mqtt: MqttCounters;
  readonly stomp: StompCounters;
  readonly tails: TailCounters;
  render(): Promise<string>;
  /** The broker closed a connection because its client was slow, or the slowest when memory ran low. */
  connectionEnded(reason: "slow" | "memory"): void;
  /** Calls `read` on each scrape. */
  watchBytesInFlight(read: () => number): void;
  watchDisk(gauge: DiskGauge): void;
  /** Calls `read` on each scrape: the open connections of this HTTP listener. */
  watchHttpConnections(listener: string, read: () => number): void;
}

const secondsPerMs = 0.001;
/** The longest are for chains that take minutes to make a block final, and for receivers with a long timeout: no quantile exceeds the last bucket. */
const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 1200];
const eventBuckets = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 10_000];

/** Gauges of the client library that have names of counters. The gauges without the suffix show the same, by type. */
const misnamed = ["nodejs_active_resources_total", "nodejs_active_handles_total", "nodejs_active_requests_total"];

/** All values of labels that have few. The series of each value exists from the start, so that Prometheus sees the first count as an increase. */
const outcomesOfAttempts = ["accepted", "failed", "gone"] as const;
const outcomesOfLookups = ["found", "absent", "timed-out", "failed"] as const;
const skipReasons: readonly SkipReason[] = [
  "undecodable-batch",
  "wrong-count",
  "wrong-root",
  "beyond-limits",
  "topic-name-refused",
  "topic-name-taken",
  "topic-not-indexed",
  "block-full",
  "sequence-too-high",
];
const replies = ["agreed", "refused", "unknown", "unreachable"] as const;
const endings = ["slow", "memory"] as const;

/**
 * Stele's own metrics begin with `stele_`. Those of the process (memory, processor, event loop lag, garbage collection) keep the names that common
 * dashboards expect.
 */
export function createMetrics(): MetricsRegistry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of misnamed) registry.removeSingleMetric(name);
  return new PrometheusMetrics(registry);
}

class PrometheusMetrics implements MetricsRegistry {
  readonly #registry: Registry;
  readonly #published: Counter<"group">;
  readonly #transactionDuration: Histogram<"group">;
  readonly #transactionEvents: Histogram<"group">;
  readonly #indexed: Counter<"group">;
  readonly #skipped: Counter<"group" | "reason">;
  readonly #integrity: ReturnType<typeof createIntegrityMetrics>;
  readonly #retention: ReturnType<typeof createRetentionMetrics>;
  readonly #reorganisations: Counter<"group">;
  readonly #vanished: Counter<"group">;
  readonly #attemptDuration: Histogram<"outcome">;
  readonly deadLetters: Metrics["deadLetters"];
  readonly #lookups: Counter<"outcome">;
  readonly #consents: Counter<"reply">;
  readonly #connectionsEnded: Counter<"reason">;
  readonly #httpConnections: Map<string, () => number>;
  readonly mqtt: MqttCounters;
  readonly stomp: StompCounters;
  readonly tails: TailCounters;

  constructor(registry: Registry) {
    const registers = [registry];
    const byGroup = { registers, labelNames: ["group"] as const };
    this.#registry = registry;
    [this.mqtt, this.stomp] = [createMqttMetrics(registry), createStompMetrics(registry)];
    [this.tails, this.deadLetters] = [createTailMetrics(registry), createDeadLetterMetrics(registry)];
    this.#published = new Counter({
      ...byGroup,
      name: "stele_events_published_total",
      help: "Events published through this node and committed.",
    });
    this.#transactionDuration = new Histogram({
      ...byGroup,
      name: "stele_transaction_duration_seconds",
      help: "Time from sending a transaction until it is final.",
      buckets: durationBuckets,
    });
    this.#transactionEvents = new Histogram({
      ...byGroup,
      name: "stele_transaction_events",
      help: "Events committed in one transaction.",
      buckets: eventBuckets,
    });
    this.#indexed = new Counter({ ...byGroup, name: "stele_blocks_indexed_total", help: "Final blocks indexed." });
    this.#skipped = new Counter({
      registers,
      labelNames: ["group", "reason"],
      name: "stele_chain_entries_skipped_total",
      help: "Batches and topics on the chain that the index skipped, by reason.",
    });
    [this.#integrity, this.#retention] = [createIntegrityMetrics(registry), createRetentionMetrics(registry)];
    this.#httpConnections = createHttpConnections(registry);
    this.#reorganisations = new Counter({
      ...byGroup,
      name: "stele_reorganisations_total",
      help: "Reorgs that removed blocks that were final by the group's setting.",
    });
    this.#vanished = new Counter({
      ...byGroup,
      name: "stele_events_vanished_total",
      help: "Events in removed blocks, including those that came back in other blocks.",
    });
    this.#attemptDuration = new Histogram({
      registers,
      labelNames: ["outcome"],
      name: "stele_delivery_attempt_duration_seconds",
      help: "Attempts to deliver one event to one subscription, by outcome.",
      buckets: durationBuckets,
    });
    this.#lookups = new Counter({
      registers,
      labelNames: ["outcome"],
      name: "stele_callback_lookups_total",
      help: "Look-ups of receivers' host names, by outcome.",
    });
    this.#consents = new Counter({
      registers,
      labelNames: ["reply"],
      name: "stele_callback_consents_total",
      help: "Consent requests to receivers, by reply.",
    });
    this.#connectionsEnded = new Counter({
      registers,
      labelNames: ["reason"],
      name: "stele_connections_ended_total",
      help: "Connections closed because their client was slow, or the slowest when memory ran low.",
    });
    this.#beginAtZero();
  }

  #beginAtZero(): void {
    for (const outcome of outcomesOfAttempts) this.#attemptDuration.zero({ outcome });
    for (const outcome of outcomesOfLookups) this.#lookups.inc({ outcome }, 0);
    for (const reply of replies) this.#consents.inc({ reply }, 0);
    for (const reason of endings) this.#connectionsEnded.inc({ reason }, 0);
  }

  watchGroups(read: () => readonly GroupGauge[]): void {
    const registers = [this.#registry];
    for (const { groupId } of read()) this.#beginGroupAtZero(groupId);
    const gauge = (name: string, help: string, valueOf: (group: GroupGauge) => number | undefined): Gauge<"group"> =>
      new Gauge({
        registers,
        labelNames: ["group"],
        name,
        help,
        collect() {
          this.reset();
          for (const group of read()) {
            const value = valueOf(group);
            if (value !== undefined) this.set({ group: group.groupId }, value);
          }
        },
      });
    gauge("stele_group_up", "1 while the group can serve, else 0.", ({ ready }) => Number(ready));
    gauge(
      "stele_transactions_failing",
      "1 while the chain refuses this node's transactions or does not commit them in time, else 0.",
      ({ transactionFailure }) => Number(transactionFailure !== undefined),
    );
    gauge("stele_indexed_block", "Number of the newest indexed block.", ({ indexedBlock }) =>
      indexedBlock < 0 ? undefined : indexedBlock,
    );
    gauge("stele_chain_head_block", "Newest known block, final or not.", ({ headBlock }) => headBlock);
    gauge("stele_group_lag_blocks", "Blocks between the newest known and the newest indexed one.", (group) =>
      group.headBlock === undefined ? undefined : Math.max(0, group.headBlock - group.indexedBlock),
    );
    gauge(
      "stele_group_follows",
      "1 if this node follows the group's chain and writes its index, else 0.",
      ({ role }) => role && Number(role === "follows"),
    );
    gauge(
      "stele_subscriptions_suspended",
      "Subscriptions of all nodes that the broker suspended, for example because their receivers failed for too long.",
      ({ held }) => held?.suspended,
    );
    gauge(
      "stele_subscriptions_locked",
      "Subscriptions that the broker does not deliver, because no key of this node decrypts their secrets.",
      ({ held }) => held?.locked,
    );
    gauge(
      "stele_subscriptions_paused",
      "Subscriptions of all nodes that an operator has paused.",
      ({ held }) => held?.paused,
    );
    gauge(
      "stele_delivery_lag_events",
      "Largest number of events that one active subscription of this node still has to deliver, among the 100 that wait for the oldest events.",
      ({ lag }) => lag?.events,
    );
    gauge(
      "stele_delivery_lag_seconds",
      "Age of the oldest event that an active subscription of this node has still to deliver; 0 for none.",
      ({ lag }) => lag?.seconds,
    );
    gauge(
      "stele_subscriptions_delivered",
      "Active subscriptions that this node delivers.",
      (group) => group.subscriptions,
    );
  }

  #beginGroupAtZero(group: string): void {
    for (const reason of skipReasons) this.#skipped.inc({ group, reason }, 0);
    for (const counter of [this.#published, this.#indexed, this.#reorganisations, this.#vanished])
      counter.inc({ group }, 0);
    for (const histogram of [this.#transactionDuration, this.#transactionEvents]) histogram.zero({ group });
    this.#integrity.beginAtZero(group);
    this.#retention.beginAtZero(group);
  }

  watchNode(read: () => NodeGauge | undefined): void {
    const member = new Gauge({
      registers: [],
      name: "stele_node_member",
      help: "1 while this node is a member of its cluster, else 0.",
      collect() {
        this.set(Number(read()?.isMember === true));
      },
    });
    this.#registry.registerMetric(member);
  }

  watchCallbacks(read: () => CallbackGauge): void {
    const gauge = (name: string, help: string, valueOf: (callbacks: CallbackGauge) => number): Gauge =>
      new Gauge({
        registers: [this.#registry],
        name,
        help,
        collect() {
          this.set(valueOf(read()));
        },
      });
    gauge("stele_callback_connections", "Connections to receivers of callbacks.", ({ connections }) => connections);
    gauge(
      "stele_callbacks_waiting",
      "Callbacks that wait for a connection, for the rate limit of their receiver, or for their turn to take an event.",
      ({ waiting }) => waiting,
    );
  }

  watchHttpConnections(listener: string, read: () => number): void {
    this.#httpConnections.set(listener, read);
  }

  watchDisk(gauge: DiskGauge): void {
    watchDisk(this.#registry, gauge);
  }

  watchBytesInFlight(read: () => number): void {
    const bytes = new Gauge({
      registers: [],
      name: "stele_bytes_in_flight",
      help: "Memory of long requests that are being read and of long answers that clients have not read yet.",
      collect() {
        this.set(read());
      },
    });
    this.#registry.registerMetric(bytes);
  }

  connectionEnded(reason: "slow" | "memory"): void {
    this.#connectionsEnded.inc({ reason });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  async render(): Promise<string> {
    return await this.#registry.metrics();
  }

  eventsPublished(group: string, count: number): void {
    this.#published.inc({ group }, count);
  }

  transactionCommitted(group: string, measure: { readonly events: number; readonly durationMs: number }): void {
    this.#transactionDuration.observe({ group }, measure.durationMs * secondsPerMs);
    this.#transactionEvents.observe({ group }, measure.events);
  }

  blocksIndexed(group: string, blocks: number): void {
    this.#indexed.inc({ group }, blocks);
  }

  entrySkipped(group: string, reason: string): void {
    this.#skipped.inc({ group, reason });
  }

  indexDamaged(group: string, outcome: "mended" | "unmended"): void {
    this.#integrity.damaged.inc({ group, outcome });
  }

  scrubbed(group: string, { block, batches }: { readonly block: number; readonly batches: number }): void {
    this.#integrity.scrubbed.inc({ group }, batches);
    this.#integrity.scrubbedBlock.set({ group }, block);
  }

  chainDamaged(group: string, outcome: "mended" | "unmended"): void {
    this.#integrity.chainDamaged.inc({ group, outcome });
  }

  chainScrubbed(group: string, { block, blocks }: { readonly block: number; readonly blocks: number }): void {
    this.#integrity.chainScrubbed.inc({ group }, blocks);
    this.#integrity.chainScrubbedBlock.set({ group }, block);
  }

  scrubEnded(group: string, { part, at }: { readonly part: ScrubPart; readonly at: number }): void {
    this.#integrity.scrubEnded.set({ group, part }, at * secondsPerMs);
  }

  eventsDropped(
    group: string,
    dropped: { readonly batches: number; readonly bytes: number; readonly block: number },
  ): void {
    this.#retention.note(group, dropped);
  }

  reorganised(group: string, measure: { readonly events: number }): void {
    this.#reorganisations.inc({ group });
    this.#vanished.inc({ group }, measure.events);
  }

  attemptEnded(outcome: "accepted" | "failed" | "gone", durationMs: number): void {
    this.#attemptDuration.observe({ outcome }, durationMs * secondsPerMs);
  }

  lookupEnded(outcome: "found" | "absent" | "timed-out" | "failed"): void {
    this.#lookups.inc({ outcome });
  }

  consentAsked(reply: "agreed" | "refused" | "unknown" | "unreachable"): void {
    this.#consents.inc({ reply });
  }
}
