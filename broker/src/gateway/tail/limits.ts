/** Interval between heartbeats of an idle tail: well below the 30 to 60 s after which proxies close an idle connection. */
export const heartbeatMs = 15_000;

/** A heartbeat interval has this many turns. Each turn serves a part of the tails, so that the broker does not write to thousands of tails at once. */
export const heartbeatTurns = 15;

/** The broker ends a tail whose client has read nothing of its waiting bytes at this many consecutive heartbeats. */
export const stalledBeatsMax = 4;

/** The broker ends a tail whose events the node cannot read at this many consecutive heartbeats, so that the client can go to another node. */
export const stuckBeatsMax = 2;

/** Shortest delay before a reconnect. The broker tells clients how long to wait. */
export const retryMsMin = 1_000;

/** Longest delay before a reconnect. Each client gets a random one, so that clients do not reconnect all at once. */
export const retryMsMax = 3_000;

/** Longest content filter, in characters. */
export const filterCharactersMax = 1_024;

/** Conditions of one content filter. */
export const filterConditionsMax = 16;

/** Topics and patterns of one tail. */
export const tailTopicsMax = 100;

/** Maximum number of bytes of cached encodings, over all tails. An event with a longer encoding stays in the cache until the next event is encoded. */
export const encodingsBytesMax = 8 * 1024 * 1024;

/** Bytes counted for each cached encoding in addition to its own: the memory of the objects around it. */
export const encodingOverheadBytes = 512;

/** Maximum number of bytes of event contents that stay in the cache as parsed JSON, over all tails with a filter. */
export const parsedBytesMax = 128 * 1024;

/**
 * The broker checks contents that are longer than this against the limits of a JSON body (levels, values, names) before it parses them. A content over a limit
 * matches no filter. Parsing a content of this length takes 8 ms.
 */
export const unmeasuredContentBytesMax = 64 * 1024;

/** Bytes counted for each parsed content in addition to its text. */
export const parsedOverheadBytes = 128;
