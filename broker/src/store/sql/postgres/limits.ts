/** Longest a statement runs before the server ends it, in milliseconds. */
export const statementMsMax = 10_000;

/** Longest a statement waits for a lock that another transaction holds, in milliseconds. */
export const lockMsMax = 5_000;

/**
 * Longest a transaction stands still before the server ends it, in milliseconds: so long a node that hangs can hold locks. Not above the least
 * `takeOverAfterMs`, so that whoever takes its work over does not wait for it.
 */
export const idleInTransactionMsMax = 2_000;

/** Longest a statement runs or waits that changes the tables at a start, or takes an index back, in milliseconds. */
export const migrationMsMax = 600_000;

/** What an answer may take on its way beyond the server's own limit, in milliseconds; then the connection counts as dead. */
export const answerDelayMsMax = 5_000;

/** Longest that opening a connection takes, and longest that a call waits for one that is free, in milliseconds. */
export const connectMsMax = 5_000;

/** Longest that a server which is only asked whether it answers is waited for, in milliseconds: to connect, and again to answer. */
export const reachMsMax = 2_000;

/** After the server was lost, calls wait so long for its return, in milliseconds; later ones fail at once until it is back. */
export const outageWaitMsMax = 5_000;

/** Shortest wait between two tries to reach a lost server, in milliseconds; it doubles with each try. */
export const probeDelayMsMin = 50;

/** Longest such wait, in milliseconds. */
export const probeDelayMsMax = 1_000;

/** Calls that wait for a connection; further ones are answered as busy. */
export const callsWaitingMax = 10_000;

/** Tries of a change that the server undid for the sake of another one. */
export const conflictTriesMax = 5;

/** How long the lost connections of one outage are counted before they are told of, in milliseconds: a server that ends takes them all with it. */
export const lossesCountMs = 500;

/** Least time between two outages that the log tells of, in milliseconds; what comes sooner is counted together. */
export const outagesToldEveryMs = 10_000;
