/** Every bound of the engine, with its unit last. Defaults are in `docs/limits.md`; a setting may change those that `Settings` names. */
export interface EngineLimits {
  /** Bytes of one event's content. */
  readonly contentBytesMax: number;
  /** Bytes of one event's extensions: keys and values in UTF-8. */
  readonly extensionsBytesMax: number;
  /** Maximum number of publishes that wait for a transaction, in each group. */
  readonly publishesWaitingMax: number;
  /** Maximum content and extensions of waiting publishes, in bytes. */
  readonly publishBytesWaitingMax: number;
  /** How long the next transaction may wait for the callers of the one that has just ended. */
  readonly lingerMsMax: number;
  /** Age of the transaction in progress from which a second one that is not full is sent beside it. */
  readonly pipelineAfterMs: number;
  /** How long a transaction, and the indexing of its block, may take before a caller is answered. */
  readonly transactionTimeoutMs: number;
  /** Publish keys that a group keeps; further ones are refused. Each takes up to 1.5 KiB of disk. */
  readonly publishKeysMax: number;
  /** Publish keys that one caller may have of these, so that it does not fill the table of the others. */
  readonly publishKeysPerCallerMax: number;
  /** Publish keys that one session may have: packet identifiers of QoS 2 that it has not released. */
  readonly publishKeysPerSessionMax: number;
  /** How long a publish key is kept. */
  readonly publishKeyKeptMs: number;
  /** Maximum number of subscriptions of this broker. Nodes that share a database may exceed it by what they create within a second. */
  readonly subscriptionsMax: number;
  /** Maximum number of subscriptions to one receiver: scheme, host and port of the url. Nodes may exceed it likewise. */
  readonly subscriptionsPerReceiverMax: number;
  /** Sessions connected to one node, and as many again without connection in each group; each takes about 2 KiB and what its filters take. */
  readonly sessionsMax: number;
  /** Rejections (STOMP NACK) of one event after which its subscription is suspended. With the waits between them they take 13 seconds. */
  readonly rejectionsMax: number;
  /** Wills that the sessions of one node keep, with their topics and extensions. */
  readonly willBytesMax: number;
  /** Events that a reader may queue before it leaves the live feed. */
  readonly feedEventsMax: number;
  /** Encoded bytes of batches that a reader may queue before it leaves the live feed. */
  readonly feedBytesMax: number;
  /** Maximum number of batches in one read by a reader that catches up. */
  readonly readBatchesMax: number;
  /** Bytes of encoded events after which a read of the index stops. */
  readonly readBytesMax: number;
  /** Maximum number of such reads at once, of all readers. The others wait, so that the store can serve other calls. */
  readonly feedReadsMax: number;
  /** Memory for pages of such reads, shared by all readers: encoded events, with an estimate for the decoded ones. */
  readonly recentBytesMax: number;
  /** Memory for batches that readers keep while they are behind, of all readers. Those that stand still let go of theirs. */
  readonly heldBytesMax: number;
  /** Acknowledged events after which cursors are written. */
  readonly progressEventsMax: number;
  /** Time after an acknowledgement in which its cursor is written. */
  readonly progressDelayMs: number;
  /** Wait after the first failed attempt of a delivery; it doubles with each further one. */
  readonly retryDelayMsMin: number;
  /** Longest wait between two attempts, unless the receiver asks for more. */
  readonly retryDelayMsMax: number;
  /** How long a subscription may fail before it is suspended. */
  readonly giveUpAfterMs: number;
  /** Wait before cursors that could not be written are written again; it doubles with each failure. */
  readonly progressRetryDelayMsMin: number;
  /** Longest wait before progress is written again. After a kill right after an outage, at most the events acknowledged in that time are repeated. */
  readonly progressRetryDelayMsMax: number;
  /** Wait between two rounds that read and check everything in a group's index; 0 for none. */
  readonly scrubPeriodMs: number;
  /** Wait before a follower that failed is tried again; it doubles with each failure. */
  readonly followDelayMsMin: number;
  /** Longest such wait. */
  readonly followDelayMsMax: number;
  /** How long a start waits for chains outside this process. Groups that take longer start while the others serve. */
  readonly startWaitMs: number;
  /** Wait before a group that could not be started is tried again; it doubles with each failure. */
  readonly startDelayMsMin: number;
  /** Longest such wait. */
  readonly startDelayMsMax: number;
  /** How long a chain may be away before its group's health reports it. */
  readonly outageToleranceMs: number;
  /** How long the membership of a node lasts without a renewal; it renews each third of that. */
  readonly membershipMs: number;
  /** Where nodes share the store: longest wait before a node reads the index again without a hint. */
  readonly watchPollMs: number;
  /** Longest wait before a node reads again, without a hint, which subscriptions it owns. */
  readonly holdingsPollMs: number;
  /** Wait between two checks whether subscriptions are balanced. */
  readonly balanceEveryMs: number;
  /** How long a call waits for a subscription that another node hands over. */
  readonly claimWaitMs: number;
  /** Longest wait in that time before the call asks again without a hint. */
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
  holdingsPollMs: 2 * second,
  balanceEveryMs: second,
  claimWaitMs: 15 * second,
  claimPollMs: 100,
};
