/** Every bound of the engine, with its unit last. Defaults are in `docs/limits.md`; a setting may change those that `Settings` names. */
export interface EngineLimits {
  /** Bytes of one event's content. */
  readonly contentBytesMax: number;
  /** Bytes of one event's extensions: keys and values in UTF-8. */
  readonly extensionsBytesMax: number;
  /** Publishes that wait for a transaction, in each group. */
  readonly publishesWaitingMax: number;
  /** Content and extensions of those that wait, in bytes. */
  readonly publishBytesWaitingMax: number;
  /** How long a transaction, and the indexing of its block, may take before a caller is answered. */
  readonly transactionTimeoutMs: number;
  readonly subscriptionsMax: number;
  /** Events that a subscription may hold in memory before it leaves the live feed. */
  readonly feedEventsMax: number;
  /** Batches and bytes of one read by a subscription that catches up. */
  readonly readBatchesMax: number;
  readonly readBytesMax: number;
  readonly progressEventsMax: number;
  readonly progressDelayMs: number;
  readonly retryDelayMsMin: number;
  readonly retryDelayMsMax: number;
  /** How long a subscription may fail before it is suspended. */
  readonly giveUpAfterMs: number;
  /** Delay before a follower that failed tries again. */
  readonly followDelayMsMin: number;
  readonly followDelayMsMax: number;
}

const second = 1_000;
const minute = 60 * second;
const day = 24 * 60 * minute;

export const defaultEngineLimits: EngineLimits = {
  contentBytesMax: 64 * 1024,
  extensionsBytesMax: 4 * 1024,
  publishesWaitingMax: 20_000,
  publishBytesWaitingMax: 64 * 1024 * 1024,
  transactionTimeoutMs: 30 * second,
  subscriptionsMax: 100_000,
  feedEventsMax: 2_048,
  readBatchesMax: 64,
  readBytesMax: 1024 * 1024,
  progressEventsMax: 100,
  progressDelayMs: 50,
  retryDelayMsMin: second,
  retryDelayMsMax: 5 * minute,
  giveUpAfterMs: 3 * day,
  followDelayMsMin: 100,
  followDelayMsMax: 10 * second,
};
