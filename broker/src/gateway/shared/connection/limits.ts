/** Bytes that wait for a client that reads slowly; until it has taken them, it gets no event and nothing it sends is read. */
export const outboxBytesMax = 256 * 1024;

/** Bytes that wait for all slow readers together. Above it, a client gets events only while it takes what it was sent before. */
export const unreadBytesMax = 64 * 1024 * 1024;

/** Unfinished packets and frames that hold fewer bytes are not counted against the memory that connections share. */
export const unfinishedBytesMin = 4 * 1024;

/** What each extension of a publish that waits counts beside its characters: headers and properties may be thousands of two bytes each. */
export const keptExtensionBytes = 128;

/** Filters of one connection that do not count against the shared memory. */
export const uncountedFiltersMax = 16;

/** What each further filter counts, in bytes: it stands in the session, in the index of the session and in that of the group, however many levels it has. */
export const keptFilterBytes = 2_048;

/** Topics that one connection may open in a minute by publishing to them. */
export const opensPerMinuteMax = 600;

/** A connection that is silent for so long is probed by the system, so that one without heart-beats whose client is gone ends. */
export const probeAfterMs = 60_000;

/** How long a client may take to read the farewell of a connection that ends. */
export const closeGraceMs = 1_000;

/** How often the files of a certificate are read again, in milliseconds: a renewed one serves new connections from then on. */
export const certificateReloadMs = 60_000;

/** What clients may cause as often as they like is logged so often at most. */
export const countedLogIntervalMs = 1_000;
