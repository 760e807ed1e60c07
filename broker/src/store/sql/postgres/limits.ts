/** Longest time that a statement runs before the server ends it, in milliseconds. */
export const statementMsMax = 10_000;

/** Longest time that a statement waits for a lock of another transaction, in milliseconds. */
export const lockMsMax = 5_000;

/**
 * Longest time for which a transaction may be idle before the server ends it, in milliseconds. A node that hangs keeps its locks this long. At most the
 * smallest `takeOverAfterMs`, so that the node that takes over does not wait for the locks.
 */
export const idleInTransactionMsMax = 2_000;

/** Longest time that a statement of a migration, a rollback or a rebuild of indexes runs, or waits for a lock, in milliseconds. */
export const migrationMsMax = 600_000;

/** Longest time that an answer may take beyond the server's own limit, in milliseconds; then the connection counts as dead. */
export const answerDelayMsMax = 5_000;

/** Number of connections for writes that no flood of other calls may delay: writes of the index, and those before a transaction of publishes. */
export const urgentConnectionsMax = 1;

/** Time limit for opening a connection, and for waiting for a free one, in milliseconds. */
export const connectMsMax = 5_000;

/** Time limit of each half of a probe, in milliseconds: for connecting, and for the answer. */
export const reachMsMax = 2_000;

/** After the server was lost, calls wait this long for its return, in milliseconds; after that, calls fail at once until it is back. */
export const outageWaitMsMax = 5_000;

/** Shortest wait between two tries to reach a lost server, in milliseconds; it doubles with each try. */
export const probeDelayMsMin = 50;

/** Longest wait between two tries to reach a lost server, in milliseconds. */
export const probeDelayMsMax = 1_000;

/** Maximum number of calls that wait for a connection; further calls fail as busy. */
export const callsWaitingMax = 10_000;

/** Maximum number of tries of a transaction that the server undoes because of a deadlock or a conflict, or that meets a held lock. */
export const conflictTriesMax = 5;

/** All connections lost within this time share one log line, in milliseconds: a server that stops closes all of them. */
export const lossesCountMs = 500;

/** Shortest time between log lines about two outages, in milliseconds; further outages within this time share one line. */
export const outagesReportedEveryMs = 10_000;
