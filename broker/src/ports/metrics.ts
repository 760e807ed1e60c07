/** Current state of a group. */
export interface GroupGauge {
  readonly groupId: string;
  readonly ready: boolean;
  /** Why publishes through this node fail although the group is ready. */
  readonly transactionFailure?: string | undefined;
  /** -1 before the first one. */
  readonly indexedBlock: number;
  readonly headBlock?: number | undefined;
  readonly role?: "follows" | "watches";
  readonly subscriptions?: number;
  readonly held?: { readonly suspended: number; readonly paused: number; readonly locked: number };
  readonly lag?: { readonly events: number; readonly seconds: number | undefined };
}

/** Current state of this node in its cluster. */
export interface NodeGauge {
  readonly isMember: boolean;
}

/** Current state of callbacks. */
export interface CallbackGauge {
  /** Connections to receivers. */
  readonly connections: number;
  /** Requests that wait for a connection, or for the rate limit of their receiver. */
  readonly waiting: number;
}

/**
 * What a scrub verifies. `index`: the store's index. `chain`: the blocks in the chain's file. `places`: the index of hashes and logs in that file (see
 * `ChainCheck.checkIndexEntries`). `state`: the newest state in that file.
 */
export type ScrubPart = "index" | "chain" | "places" | "state";

export const deadLetterChanges = ["added", "delivered", "discarded"] as const;
export type DeadLetterChange = (typeof deadLetterChanges)[number];

/** Counters of the engine. Labels are few and bounded: never a topic, subscription or url. */
export interface Metrics {
  eventsPublished(groupId: string, count: number): void;
  transactionCommitted(groupId: string, measure: { readonly events: number; readonly durationMs: number }): void;
  blocksIndexed(groupId: string, blocks: number): void;
  /** The index skipped something on the chain; `reason` is one of a fixed few. */
  entrySkipped(groupId: string, reason: string): void;
  /** A batch in the store was damaged: it was rewritten from the chain, or could not be. */
  indexDamaged(groupId: string, outcome: "mended" | "unmended"): void;
  /** The scan for damage has reached a block of the index. */
  scrubbed(groupId: string, measure: { readonly block: number; readonly batches: number }): void;
  /** A block in the chain's file was damaged: it was rebuilt from the index, or could not be. */
  chainDamaged(groupId: string, outcome: "mended" | "unmended"): void;
  /** The scan for damage has reached a block of the chain's file. */
  chainScrubbed(groupId: string, measure: { readonly block: number; readonly blocks: number }): void;
  /** A scrub verified all of a part; `at` is in milliseconds since the epoch. */
  scrubEnded(groupId: string, round: { readonly part: ScrubPart; readonly at: number }): void;
  /** The store dropped its copy of the events of batches, up to a block. */
  eventsDropped(
    groupId: string,
    measure: { readonly batches: number; readonly bytes: number; readonly block: number },
  ): void;
  /** A reorg removed final blocks with their events. */
  reorganised(groupId: string, measure: { readonly events: number }): void;
  attemptEnded(outcome: "accepted" | "failed" | "gone", durationMs: number): void;
  /** Events became dead letters, or their dead letters were removed: delivered by an operator's order, or discarded by one. */
  deadLetters(change: DeadLetterChange, count: number): void;
  /** The broker looked up the host name of a receiver. */
  lookupEnded(outcome: "found" | "absent" | "timed-out" | "failed"): void;
  /** The broker asked a receiver for consent. */
  consentAsked(reply: "agreed" | "refused" | "unknown" | "unreachable"): void;
  /** Calls `read` on each scrape. */
  watchGroups(read: () => readonly GroupGauge[]): void;
  /** Like {@link watchGroups}, for a node in a cluster. */
  watchNode(read: () => NodeGauge | undefined): void;
  /** Like {@link watchGroups}, for callbacks. */
  watchCallbacks(read: () => CallbackGauge): void;
}

/** Discards everything; for tests. */
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
  eventsDropped: () => {},
  reorganised: () => {},
  attemptEnded: () => {},
  deadLetters: () => {},
  lookupEnded: () => {},
  consentAsked: () => {},
  watchGroups: () => {},
  watchNode: () => {},
  watchCallbacks: () => {},
};
