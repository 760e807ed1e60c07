/** How a group is at this moment. */
export interface GroupGauge {
  readonly groupId: string;
  readonly ready: boolean;
  readonly indexedBlock: number;
  readonly headBlock?: number | undefined;
  readonly role?: "follows" | "watches";
  readonly subscriptions?: number;
}

/** How this node stands with those that share its store. */
export interface NodeGauge {
  readonly isMember: boolean;
}

/** Callbacks at this moment. */
export interface CallbackGauge {
  /** Connections to receivers. */
  readonly connections: number;
  /** Requests that wait for a connection, or for the pace of their receiver. */
  readonly waiting: number;
}

/** What the engine counts. Labels are few and bounded: no topic, subscription or url is ever one. */
export interface Metrics {
  eventsPublished(groupId: string, count: number): void;
  transactionCommitted(groupId: string, measure: { readonly events: number; readonly durationMs: number }): void;
  blocksIndexed(groupId: string, measure: { readonly blocks: number; readonly head: number }): void;
  /** Something on the chain was left out; `reason` is one of a fixed few. */
  entrySkipped(groupId: string, reason: string): void;
  /** A batch in the store was not as it was written: it was written anew from the chain, or could not be. */
  indexDamaged(groupId: string, outcome: "mended" | "unmended"): void;
  /** The index was read up to a block, to find what is damaged in it. */
  scrubbed(groupId: string, measure: { readonly block: number; readonly batches: number }): void;
  /** A block in the chain's file was not as it was written: it was made anew from the index, or could not be. */
  chainDamaged(groupId: string, outcome: "mended" | "unmended"): void;
  /** The chain's file was read up to a block, to find what is damaged in it. */
  chainScrubbed(groupId: string, measure: { readonly block: number; readonly blocks: number }): void;
  /** A round went through all of a part; `at` is in milliseconds since the epoch. */
  scrubEnded(groupId: string, round: { readonly part: "index" | "chain"; readonly at: number }): void;
  /** Final blocks were taken back, and events with them. */
  reorganised(groupId: string, measure: { readonly events: number }): void;
  attemptEnded(outcome: "accepted" | "failed" | "gone", durationMs: number): void;
  /** The host name of a receiver was looked up. */
  lookupEnded(outcome: "found" | "absent" | "timed-out" | "failed"): void;
  /** A receiver was asked whether it may be called. */
  consentAsked(reply: "agreed" | "refused" | "unknown" | "unreachable"): void;
  /** `read` is asked whenever the metrics are read out. */
  watchGroups(read: () => readonly GroupGauge[]): void;
  /** The same, of a node that shares its store with others. */
  watchNode(read: () => NodeGauge | undefined): void;
  /** The same, of callbacks. */
  watchCallbacks(read: () => CallbackGauge): void;
}

/** Counts nothing; for tests. */
export const noMetrics: Metrics = {
  eventsPublished: () => {},
  transactionCommitted: () => {},
  blocksIndexed: () => {},
  entrySkipped: () => {},
  indexDamaged: () => {},
  scrubbed: () => {},
  chainDamaged: () => {},
  chainScrubbed: () => {},
  scrubEnded: () => {},
  reorganised: () => {},
  attemptEnded: () => {},
  lookupEnded: () => {},
  consentAsked: () => {},
  watchGroups: () => {},
  watchNode: () => {},
  watchCallbacks: () => {},
};
