/** How often a tail that has nothing else to say sends a heartbeat: well below the 30 to 60 s after which proxies give up. */
export const heartbeatMs = 15_000;

/** Turns of the heartbeat: in each, its share of all tails is served, so that thousands are not written to at once. */
export const heartbeatTurns = 15;

/** Heartbeats in a row at which a client has taken nothing of what waits for it; then its tail ends. */
export const stalledBeatsMax = 4;

/** Heartbeats in a row at which the node cannot read a tail's events; then the tail ends, so that its client can go to another node. */
export const stuckBeatsMax = 2;

/** Shortest wait that clients are told to take before they connect again. */
export const retryMsMin = 1_000;

/** Longest such wait. Each client gets a random one, so that they do not reconnect all at once. */
export const retryMsMax = 3_000;

/** Longest content filter, in characters. */
export const filterCharactersMax = 1_024;

/** Conditions of one content filter. */
export const filterConditionsMax = 16;

/** Topics and patterns of one tail. */
export const tailTopicsMax = 100;

/** Bytes of the encoded events that are kept for all tails; one that is longer is kept until the next. */
export const encodingsBytesMax = 8 * 1024 * 1024;

/** What each of them counts beside its bytes: the objects that hold it. */
export const encodingOverheadBytes = 512;

/** Contents that are kept as JSON for all tails with a filter, by the bytes of their texts. */
export const parsedBytesMax = 128 * 1024;

/** What each of them counts beside its bytes. */
export const parsedOverheadBytes = 128;
