/** Longest command with its headers: 16 times the extensions that an event may have by default. */
export const headBytesMax = 64 * 1024;

/** Headers of one frame: enough for all extensions of an event, even if each is very short. */
export const headersMax = 1_000;

/**
 * Minimum number of bytes by which a WebSocket message may exceed the longest frame: a message may carry several frames. A longer message ends the
 * connection with close code 1009 instead of an ERROR.
 */
export const messageBytesSpareMin = 64 * 1024;

/** SENDs and other frames of one connection whose answers wait for their turn. At this limit, nothing more is read from the client. */
export const answersWaitingMax = 1_000;

/** Transactions that one connection may have open. */
export const transactionsMax = 100;

/** ACK, NACK and SEND frames of one transaction. By default, each chain takes at least that many events in one transaction. */
export const transactionFramesMax = 1_000;

/** Bytes that the open transactions of one connection keep. */
export const transactionBytesMax = 1024 * 1024;

/** Bytes counted in addition to a frame's own, for each frame that the broker keeps in a transaction or until it has sent the answer. */
export const keptFrameBytes = 256;

/** Filters that the subscriptions of one connection have together; more if the settings allow more subscriptions. */
export const connectionFiltersMax = 1_000;

/** Unacknowledged events of a subscription without `prefetch-count`, unless its `ack` is `auto`. */
export const prefetchDefault = 100;

/** Largest `prefetch-count`. */
export const prefetchMax = 1_000;

/**
 * Events that the subscriptions of one connection may leave unacknowledged together, except those with `auto`. Once it is reached, each further
 * subscription may still have `prefetchMin`. The broker keeps some 600 bytes for each event.
 */
export const connectionPrefetchMax = 2_000;

/** Events that each subscription may leave unacknowledged, however many subscriptions the connection has. */
export const prefetchMin = 10;

/** Recently settled events that a subscription remembers; with a larger `prefetch-count`, that many. A second ACK of such an event does nothing. */
export const settledKeptMin = 100;

/** Longest `id`, `transaction` and `receipt`, in bytes. The broker keeps them while they are in use; up to 1,000 receipts of a connection may wait. */
export const nameBytesMax = 1_024;

/** Longest interval of heart-beats, in milliseconds. If a client asks for a longer one, this one counts. */
export const heartBeatMsMax = 24 * 60 * 60 * 1_000;

/** A client counts as gone after this many of its intervals without a byte: timers of both sides are inexact. */
export const heartBeatTolerance = 2;

/** How many times in one interval the broker checks whether to send a heart-beat. With three, two heart-beats are never further apart than the interval. */
export const heartBeatLooks = 3;

/** Time between two checks whether the credential of a connection is still valid, in milliseconds. */
export const credentialCheckMs = 1_000;
