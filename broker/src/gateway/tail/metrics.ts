/** Metrics of tails. The reasons are a small set: those of the engine and of this folder. */
export interface TailMetrics {
  /** The broker ended a tail. */
  tailEnded(reason: string): void;
  /** Calls `read` on each scrape. */
  watchTails(read: () => number): void;
}
