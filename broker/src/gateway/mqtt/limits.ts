/**
 * Longest CONNECT: anyone may send one. Its longest field, the payload of a will, takes up to 64 KiB; as much again is left for the client
 * identifier, properties, user name and password.
 */
export const connectBytesMax = 128 * 1024;

/**
 * Least bytes that a WebSocket message may have beyond the longest packet. A message may carry several packets, and a longer one costs the client its
 * connection with close code 1009 in place of a reason code.
 */
export const messageBytesSpareMin = 64 * 1024;

/** A client that is silent for so many times its keep-alive is gone (MQTT 5.0, section 3.1.2.10). */
export const keepAliveFactor = 1.5;

/** Events of one session that the client has not acknowledged, where it says nothing; it may ask for fewer, and with 5.0 for more. */
export const windowDefault = 100;

/** The most that it may ask for. */
export const windowMax = 1_000;

/** Topic aliases that are used towards a client, however many it takes. */
export const outboundAliasesMax = 1_000;

/** Longest client identifier, in bytes. */
export const clientIdBytesMax = 1_024;

/** Bytes that wait for a client that reads slowly; until it has taken them, it gets no event and nothing it sends is read. */
export const outboxBytesMax = 256 * 1024;

/** Bytes that wait for all slow readers together. Above it, a client gets events only while it takes what it was sent before. */
export const unreadBytesMax = 64 * 1024 * 1024;

/** Unfinished packets that hold fewer bytes are not counted against the memory that connections share. */
export const unfinishedBytesMin = 4 * 1024;

/** Topics that one connection may open in a minute by publishing to them. */
export const opensPerMinuteMax = 600;

/** Names of open topics that are remembered, so that a publish to one need not ask; the oldest make room. */
export const knownTopicsMax = 65_536;

/** Characters of a client's topic that a log line names. */
export const loggedTopicCharactersMax = 100;

/** Refused publishes of QoS 0 are logged so often at most. */
export const lostLogIntervalMs = 1_000;

/** A connection that is silent for so long is probed by the system, so that one without a keep-alive whose client is gone ends. */
export const probeAfterMs = 60_000;

/** How long a client may take to read the farewell of a connection that ends. */
export const closeGraceMs = 1_000;
