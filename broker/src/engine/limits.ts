/** Limits of the engine that tests may change; each name contains the unit. Settings may change those that `Settings` names. Defaults: `docs/limits.md`. */
export interface EngineLimits {
  /** Bytes of one event's content. */
  readonly contentBytesMax: number;
  /** Bytes of one event's extensions: keys and values in UTF-8. */
  readonly extensionsBytesMax: number;
  /** Maximum number of publishes that wait for a transaction, in each group. */
  readonly publishesWaitingMax: number;
  /** Maximum content and extensions of waiting publishes, in bytes. */
  readonly publishBytesWaitingMax: number;
  /** Longest wait, after a transaction has ended, for further publishes of the callers that it answered. */
  readonly lingerMsMax: number;
  /** When a transaction in progress has this age, the broker sends the next one beside it, even one that is not full. */
  readonly pipelineAfterMs: number;
  /** How long a transaction and the indexing of its block may take before callers are answered TIMEOUT. */
  readonly transactionTimeoutMs: number;
  /** Maximum number of publish keys of a group; further ones are refused. Each takes up to 1.5 KiB of disk. */
  readonly publishKeysMax: number;
  /** Maximum number of publish keys of one caller, to leave room for others. The principals of a tenant count as one caller; so do all sessions together. */
  readonly publishKeysPerCallerMax: number;
  /** Maximum number of publish keys of one session: packet identifiers of QoS 2 that it has not released. */
  readonly publishKeysPerSessionMax: number;
  /** How long a publish key is kept. */
  readonly publishKeyKeptMs: number;
  /** Maximum number of callback subscriptions of all nodes. Nodes count once a second, so subscriptions that are created within a second may exceed it. */
  readonly subscriptionsMax: number;
  /** Maximum number of subscriptions to one receiver (scheme, host and port of the url). Like `subscriptionsMax`, it may be exceeded within a second. */
  readonly subscriptionsPerReceiverMax: number;
  /** Maximum number of sessions connected to one node, and of stored sessions without a connection in each group. Each takes about 2 KiB plus its filters. */
  readonly sessionsMax: number;
  /** Rejections (STOMP NACK) of one event after which its session is suspended. With the waits between them they take 13 seconds. */
  readonly rejectionsMax: number;
  /**
   * Maximum bytes of the wills that the sessions of one node keep, with their topics and extensions. Those of one tenant, or of one principal without a tenant,
   * take at most half of it.
   */
  readonly willBytesMax: number;
  /** Events that a reader may queue before it leaves the live feed. */
  readonly feedEventsMax: number;
  /** Encoded bytes of batches that a reader may queue before it leaves the live feed. */
  readonly feedBytesMax: number;
  /**
   * Memory of the batches that all readers together may queue. A reader that would queue more than its share of it leaves the live feed. Each may queue one
   * batch in any case.
   */
  readonly liveBytesMax: number;
  /** Maximum number of batches in one read by a reader that catches up. */
  readonly readBatchesMax: number;
  /** Bytes of encoded events after which a read of the index stops. */
  readonly readBytesMax: number;
  /** Maximum number of concurrent reads by readers that catch up. Further ones wait, so that the store can serve other calls. */
  readonly feedReadsMax: number;
  /** Memory for recently read batches, shared by all readers: encoded events, and an estimate for the decoded ones. */
  readonly recentBytesMax: number;
  /** Memory for batches that all readers keep while they are behind. Above it, the readers that have been idle for longest drop their batches. */
  readonly heldBytesMax: number;
  /** Changes of progress, such as acknowledgements, after which cursors are written. */
  readonly progressEventsMax: number;
  /** Time after an acknowledgement within which its cursor is written. */
  readonly progressDelayMs: number;
  /** Wait after the first failed attempt of a delivery; it doubles with each further one. */
  readonly retryDelayMsMin: number;
  /** Longest wait between two attempts, unless the receiver asks for more. */
  readonly retryDelayMsMax: number;
  /** How long a subscription may fail before it is suspended. */
  readonly giveUpAfterMs: number;
  /** Wait before cursors that could not be written are written again; it doubles with each failure. */
  readonly progressRetryDelayMsMin: number;
  /**
   * Longest wait before unwritten cursors are written again. If the broker is killed after an outage of the store, events acknowledged within this wait are
   * repeated.
   */
  readonly progressRetryDelayMsMax: number;
  /** Wait between two scrubs of a group; 0 for no scrubs. */
  readonly scrubPeriodMs: number;
  /** Wait before a follower that failed is restarted; it doubles with each failure. */
  readonly followDelayMsMin: number;
  /** Longest wait before a follower that failed is restarted. */
  readonly followDelayMsMax: number;
  /** How long a starting broker waits for chains outside its process. Groups that take longer start while the others serve. */
  readonly startWaitMs: number;
  /** Wait before a group that could not be started is tried again; it doubles with each failure. */
  readonly startDelayMsMin: number;
  /** Longest wait before a group that could not be started is tried again. */
  readonly startDelayMsMax: number;
  /** How long a chain may be unreachable before its group is unready. */
  readonly outageToleranceMs: number;
  /** How long a node's membership lasts without renewal; the node renews it three times in this time. */
  readonly membershipMs: number;
  /** Longest wait before a node that shares the store reads the index again without a hint. */
  readonly watchPollMs: number;
  /** Longest wait before a node reads again, without a hint, which subscriptions it owns. */
  readonly ownedPollMs: number;
  /** Wait between two checks whether subscriptions are balanced. */
  readonly balanceEveryMs: number;
  /** Shortest wait between two balancings, or between two reads of the owned subscriptions. */
  readonly lookRestMs: number;
  /** How long a call waits for a subscription that another node hands over. */
  readonly claimWaitMs: number;
  /** Wait before a call that waits for a hand-over asks again. */
  readonly claimPollMs: number;
}

const second = 1_000;
const minute = 60 * second;
const day = 24 * 60 * minute;

export const defaultEngineLimits: EngineLimits = {
  contentBytesMax: 64 * 1024,
  extensionsBytesMax: 4 * 1024,
  publishesWaitingMax: 10_000,
  publishBytesWaitingMax: 64 * 1024 * 1024,
  lingerMsMax: 10,
  pipelineAfterMs: 100,
  transactionTimeoutMs: 30 * second,
  publishKeysMax: 1_000_000,
  publishKeysPerCallerMax: 500_000,
  publishKeysPerSessionMax: 4_096,
  publishKeyKeptMs: day,
  subscriptionsMax: 100_000,
  subscriptionsPerReceiverMax: 1_000,
  sessionsMax: 20_000,
  rejectionsMax: 8,
  willBytesMax: 64 * 1024 * 1024,
  feedEventsMax: 2_048,
  feedBytesMax: 1024 * 1024,
  liveBytesMax: 256 * 1024 * 1024,
  readBatchesMax: 64,
  readBytesMax: 1024 * 1024,
  feedReadsMax: 4,
  recentBytesMax: 8 * 1024 * 1024,
  heldBytesMax: 64 * 1024 * 1024,
  progressEventsMax: 100,
  progressDelayMs: 50,
  progressRetryDelayMsMin: 100,
  progressRetryDelayMsMax: second,
  retryDelayMsMin: second,
  retryDelayMsMax: 5 * minute,
  giveUpAfterMs: 3 * day,
  scrubPeriodMs: 7 * day,
  followDelayMsMin: 100,
  followDelayMsMax: 10 * second,
  startWaitMs: 5 * second,
  startDelayMsMin: 250,
  startDelayMsMax: 5 * second,
  outageToleranceMs: 5 * second,
  membershipMs: 6 * second,
  watchPollMs: 500,
  ownedPollMs: 2 * second,
  balanceEveryMs: second,
  lookRestMs: 100,
  claimWaitMs: 15 * second,
  claimPollMs: 50,
};
