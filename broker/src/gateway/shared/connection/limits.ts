/** Bytes that may wait for a slow client. At this limit the client gets no events, and the broker reads nothing from it. */
export const outboxBytesMax = 256 * 1024;

/** Bytes that may wait for all slow clients together. At this limit a client gets events only while it reads what it was sent. */
export const unreadBytesMax = 64 * 1024 * 1024;

/** A connection that holds fewer bytes does not count against the memory that connections share. */
export const unfinishedBytesMin = 4 * 1024;

/** Bytes counted for each extension of a kept publish in addition to its characters: a publish may have a thousand very short ones. */
export const keptExtensionBytes = 128;

/** Filters of one connection that do not count against the memory budget. */
export const uncountedFiltersMax = 16;

/** Bytes counted for each filter beyond `uncountedFiltersMax`: the session, the session's index and the group's index each hold it. */
export const keptFilterBytes = 2_048;

/** Topics that one connection may open in a minute by publishing to them. */
export const opensPerMinuteMax = 600;

/** Silence after which the system probes a connection, so that a connection without heart-beats ends if its client has vanished. */
export const probeAfterMs = 60_000;

/** How long a client may take to read the last bytes of a connection that ends. */
export const closeGraceMs = 1_000;

/** How often the certificate files are reloaded. A renewed certificate serves new connections from then on. */
export const certificateReloadMs = 60_000;

/** Lines about ended and refused connections that the log of one protocol may get at once. */
export const connectionLinesMax = 100;

/** Further such lines each second. The next line has the number of those that were left out. */
export const connectionLinesPerSecondMax = 10;

/** Lines about one kind of event, such as a connection over the limit, that the log of one protocol may get at once. */
export const repeatedLinesMax = 1;

/** Further such lines each second. The next line has the number of those that were left out. */
export const repeatedLinesPerSecondMax = 1;
