/** How often an idle tail sends a heartbeat: well below the 30 to 60 s after which proxies give up. */
export const heartbeatMs = 15_000;

/** Turns of one heartbeat interval. Each turn serves its share of all tails, so that thousands are not written to at once. */
export const heartbeatTurns = 15;

/** Heartbeats in a row at which a client has read nothing of what waits for it; then its tail ends. */
export const stalledBeatsMax = 4;

/** Heartbeats in a row at which the node cannot read a tail's events; then the tail ends, so that its client can go to another node. */
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

/** Bytes of encoded events that are kept for all tails. An event that is longer is kept until the next event is encoded. */
export const encodingsBytesMax = 8 * 1024 * 1024;

/** Bytes counted for each encoded event in addition to its encoding, for the objects that hold it. */
export const encodingOverheadBytes = 512;

/** Bytes of the contents that are kept as parsed JSON for all tails with a filter. */
export const parsedBytesMax = 128 * 1024;

/** A longer content matches no filter if it exceeds the limits of a JSON body: levels, values or names. Parsing a content of this length takes 8 ms. */
export const unmeasuredContentBytesMax = 64 * 1024;

/** Bytes counted for each parsed content in addition to its text. */
export const parsedOverheadBytes = 128;
