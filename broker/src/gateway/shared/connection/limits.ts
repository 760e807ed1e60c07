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

/** The system probes a connection that has been silent for this long. So even a connection without heart-beats ends if its client has vanished. */
export const probeAfterMs = 60_000;

/** How long a client may take to read the last bytes of a connection that ends. */
export const closeGraceMs = 1_000;

/** How often the certificate files are reloaded. A renewed certificate serves new connections from then on. */
export const certificateReloadMs = 60_000;

/** Maximum number of log lines about ended and refused connections of one protocol in a burst. */
export const connectionLinesMax = 100;

/** Number of further such lines that each second allows. The next line has the number of omitted lines. */
export const connectionLinesPerSecondMax = 10;

/** Maximum number of log lines about one kind of event of one protocol, such as a connection over the limit, in a burst. */
export const repeatedLinesMax = 1;

/** Number of further such lines that each second allows. The next line has the number of omitted lines. */
export const repeatedLinesPerSecondMax = 1;
