/**
 * Longest CONNECT: anyone may send one. Its longest field, the payload of a will, takes up to 64 KiB; the rest is for the client identifier,
 * properties, user name and password.
 */
export const connectBytesMax = 128 * 1024;

/**
 * Minimum number of bytes by which a WebSocket message may exceed the longest packet: a message may carry several packets. A longer message ends the
 * connection with close code 1009 instead of a reason code.
 */
export const messageBytesSpareMin = 64 * 1024;

/** Factor: a client that is silent for this many times its keep-alive counts as gone (MQTT 5.0, section 3.1.2.10). */
export const keepAliveFactor = 1.5;

/** Unacknowledged events of one session of a 3.1.1 client. */
export const windowDefault = 100;

/** Unacknowledged events of one session of a 5.0 client, which may ask for fewer with Receive Maximum. */
export const windowMax = 1_000;

/** Topic aliases that the broker uses towards a client, even if the client accepts more. */
export const outboundAliasesMax = 1_000;

/** Bytes of encoded packets that are kept for all subscribers of their events. A packet that is longer is kept until the next packet is encoded. */
export const encodingsBytesMax = 8 * 1024 * 1024;

/** Bytes counted for each kept packet in addition to its own, for the objects that hold it. */
export const encodingOverheadBytes = 512;

/** Bytes counted for each publish of QoS 2 that its client has not released: its packet identifier and its outcome stay in memory. */
export const unreleasedPublishBytes = 256;

/** Longest client identifier, in bytes. */
export const clientIdBytesMax = 1_024;

/** Characters that a log line shows of a name that a client chose, such as a topic. */
export const loggedCharactersMax = 100;
