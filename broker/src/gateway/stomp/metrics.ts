/** Metrics of STOMP. Labels take few values: commands of the broker and codes of the catalogue. */
export interface StompMetrics {
  /** The broker answered a client; `code` is undefined for a success. */
  answered(command: "CONNECTED" | "RECEIPT" | "ERROR", code?: number): void;
  /** Calls `read` on each scrape. */
  watchConnections(read: () => number): void;
}

/** Discards everything; for tests. */
export const noStompMetrics: StompMetrics = { answered: () => {}, watchConnections: () => {} };
