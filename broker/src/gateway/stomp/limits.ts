/** Longest command with its headers: 16 times the extensions that an event may have by default. */
export const headBytesMax = 64 * 1024;

/** Headers of one frame. The extensions of an event fit in even if each is as short as can be. */
export const headersMax = 1_000;

/**
 * Least bytes that a WebSocket message may have beyond the longest frame. A message may carry several frames, and a longer one costs the client its
 * connection with close code 1009 in place of an ERROR.
 */
export const messageBytesSpareMin = 64 * 1024;

/** SENDs and other frames of one connection whose answers wait for their turn. Beyond it, nothing more is read from the client. */
export const answersWaitingMax = 1_000;

/** Transactions that one connection may have open. */
export const transactionsMax = 100;

/** ACK, NACK and SEND frames of one transaction. The chain takes so many events in one transaction at least. */
export const transactionFramesMax = 1_000;

/** Bytes that the open transactions of one connection keep. */
export const transactionBytesMax = 1024 * 1024;

/** What each frame that is kept counts beside its bytes: in a transaction, or until its answer has left. */
export const keptFrameBytes = 256;

/** Filters that the subscriptions of one connection have together; more where the settings allow more subscriptions. */
export const connectionFiltersMax = 1_000;

/** Events of a subscription that its client has not acknowledged, where it says nothing by `prefetch-count`. */
export const prefetchDefault = 100;

/** The most that it may ask for. */
export const prefetchMax = 1_000;

/**
 * Events that the subscriptions of one connection may leave unacknowledged together, but for `prefetchMin` of each. The broker keeps some 600 bytes for
 * each of them.
 */
export const connectionPrefetchMax = 2_000;

/** Events that each subscription may leave unacknowledged, however many the connection has. */
export const prefetchMin = 10;

/** Events settled last that a subscription remembers, where `prefetch-count` is less: a second ACK for one of them does nothing. */
export const settledKeptMin = 100;

/** Longest `id`, `transaction` and `receipt`, in bytes: the broker keeps them while they are in use, and up to 1,000 receipts of a connection wait. */
export const nameBytesMax = 1_024;

/** Longest interval of heart-beats that is taken as it is asked for, in milliseconds. A longer one counts as this one. */
export const heartBeatMsMax = 24 * 60 * 60 * 1_000;

/** A client counts as gone after so many of its intervals without a byte: timers of both sides are inexact. */
export const heartBeatTolerance = 2;

/** Looks of one interval at whether a heart-beat has to be sent. With three, two of them are never further apart than the interval. */
export const heartBeatLooks = 3;

/** Pause between two looks at whether the credential of a connection still counts, in milliseconds. */
export const credentialCheckMs = 1_000;
