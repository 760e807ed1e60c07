import type { Clock } from "../../ports/clock.ts";
import type { GroupGauge, Metrics } from "../../ports/metrics.ts";

/** Length of an interval, in milliseconds. */
export const figureIntervalMs = 5_000;
/** Number of intervals kept in memory: those of one hour. Each takes about 500 bytes. */
export const figuresKeptMax = 720;

/** What this node did in one interval. */
export interface Figure {
  /** When the interval began, in milliseconds since the epoch. */
  readonly at: number;
  /** Events published through this node and committed. */
  readonly published: number;
  /** Transactions committed. */
  readonly commits: number;
  readonly commitMs: Percentiles | undefined;
  /** Callbacks that receivers accepted. */
  readonly delivered: number;
  /** Callbacks that failed. */
  readonly failed: number;
  readonly attemptMs: Percentiles | undefined;
  /** How many blocks the index of the most delayed group is behind its chain, at the end of the interval. */
  readonly lagBlocks: number;
  /** The largest number of events that wait for any one callback subscription at the end of the interval, measured as in `Lag`. */
  readonly lagEvents: number;
  /** Memory of the process at the end of the interval. */
  readonly memoryBytes: number;
}

export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export interface FiguresOptions {
  readonly clock: Clock;
  /** Memory of the process, in bytes; 0 if left out. */
  readonly readMemory?: (() => number) | undefined;
  readonly readLag: () => Pick<Figure, "lagBlocks" | "lagEvents">;
}

/** Durations in buckets, each an eighth of a doubling wide: a percentile from 0.5 ms to 60 s is off by 5 % at most. A longer duration counts as 60 s. */
class Durations {
  static readonly #bucketsMax = 160;
  readonly #counts = new Uint32Array(Durations.#bucketsMax);
  #total = 0;

  add(durationMs: number): void {
    const bucket = Math.round(8 * Math.log2(Math.max(0, durationMs) * 16 + 1));
    const index = Math.min(bucket, Durations.#bucketsMax - 1);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#total += 1;
  }

  /** Returns the percentiles and clears the durations; undefined if there are none. */
  take(): Percentiles | undefined {
    if (this.#total === 0) return undefined;
    const percentiles = { p50: this.#at(0.5), p95: this.#at(0.95), p99: this.#at(0.99) };
    this.#counts.fill(0);
    this.#total = 0;
    return percentiles;
  }

  #at(share: number): number {
    let left = Math.ceil(share * this.#total);
    const index = this.#counts.findIndex((count) => (left -= count) <= 0);
    return Math.round(((2 ** (index / 8) - 1) / 16) * 100) / 100;
  }
}

/** Counts what this node does in each interval of the last hour. */
export class Figures {
  readonly #options: FiguresOptions;
  readonly #kept: Figure[] = [];
  readonly #commitMs = new Durations();
  readonly #attemptMs = new Durations();
  #counts = { published: 0, commits: 0, delivered: 0, failed: 0 };
  #begunAt: number;
  #cancelTimer: (() => void) | undefined;

  constructor(options: FiguresOptions) {
    this.#options = options;
    this.#begunAt = options.clock.now();
  }

  start(): void {
    this.#begunAt = this.#options.clock.now();
    this.#cancelTimer = this.#options.clock.after(figureIntervalMs, () => {
      this.#end();
      this.start();
    });
  }

  stop(): void {
    this.#cancelTimer?.();
  }

  list(): readonly Figure[] {
    return [...this.#kept];
  }

  /** Wraps `metrics` so that calls count here too. */
  watch(metrics: Metrics): Metrics {
    const counted: Pick<Metrics, "eventsPublished" | "transactionCommitted" | "attemptEnded"> = {
      eventsPublished: (groupId, count) => {
        this.#counts.published += count;
        metrics.eventsPublished(groupId, count);
      },
      transactionCommitted: (groupId, measure) => {
        this.#counts.commits += 1;
        this.#commitMs.add(measure.durationMs);
        metrics.transactionCommitted(groupId, measure);
      },
      attemptEnded: (outcome, durationMs) => {
        if (outcome === "accepted") this.#counts.delivered += 1;
        else this.#counts.failed += 1;
        this.#attemptMs.add(durationMs);
        metrics.attemptEnded(outcome, durationMs);
      },
    };
    return new Proxy(metrics, {
      get: (target, name) => {
        const own: unknown = Reflect.get(counted, name);
        if (own !== undefined) return own;
        const member: unknown = Reflect.get(target, name, target);
        return typeof member === "function" ? (member.bind(target) as unknown) : member;
      },
    });
  }

  #end(): void {
    const { readMemory, readLag } = this.#options;
    const ends = { ...readLag(), memoryBytes: readMemory?.() ?? 0 };
    const durations = { commitMs: this.#commitMs.take(), attemptMs: this.#attemptMs.take() };
    this.#kept.push({ at: this.#begunAt, ...this.#counts, ...durations, ...ends });
    if (this.#kept.length > figuresKeptMax) this.#kept.shift();
    this.#counts = { published: 0, commits: 0, delivered: 0, failed: 0 };
  }
}

/** The largest lags of indexing and of delivery among the groups. */
export function lagOf(groups: readonly GroupGauge[]): Pick<Figure, "lagBlocks" | "lagEvents"> {
  const blocks = groups.map(({ headBlock, indexedBlock }) => (headBlock === undefined ? 0 : headBlock - indexedBlock));
  const events = groups.map(({ lag }) => lag?.events ?? 0);
  return { lagBlocks: Math.max(0, ...blocks), lagEvents: Math.max(0, ...events) };
}
