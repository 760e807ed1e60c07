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

/** Bytes of the encoded packets that are kept for all subscribers of an event; one packet that is longer is kept until the next. */
export const encodingsBytesMax = 8 * 1024 * 1024;

/** What each of them counts beside its bytes: the objects that hold it. */
export const encodingOverheadBytes = 512;

/** Longest client identifier, in bytes. */
export const clientIdBytesMax = 1_024;

/** Characters of a name that a client chose, such as a topic, that a log line has. */
export const loggedCharactersMax = 100;
