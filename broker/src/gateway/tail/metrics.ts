/** What is counted of tails. Reasons are few: they are the engine's and this folder's own. */
export interface TailMetrics {
  /** A tail ended for the broker's reason. */
  tailEnded(reason: string): void;
  /** Calls `read` on each scrape. */
  watchTails(read: () => number): void;
}
