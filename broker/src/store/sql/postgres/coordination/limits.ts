import type { PoolWaits } from "../pool.ts";
import type { SessionLimits } from "../session.ts";

/** Time limits of calls, and the number of connections that they share. */
export interface CallLimits {
  /** Name of the connections in the log. */
  readonly name: string;
  readonly connectionsMax: number;
  readonly session: SessionLimits;
  readonly waits: PoolWaits;
  /** Time for the answer beyond the statement's own limit, in milliseconds; then the connection counts as dead. */
  readonly answerDelayMsMax: number;
}

/** Longest membership, in milliseconds. One that ends later is from before the database's clock was set back, and is shortened to this. */
export const membershipMsMax = 600_000;

/** Time limit of a statement that renews a membership, in milliseconds: a hanging renewal must leave time for another before the membership ends. */
export const membershipStatementMsMax = 1_000;

/** Longest time that a renewal waits for a lock, in milliseconds. */
export const membershipLockMsMax = 500;

/** Time limit for opening the renewal's connection, in milliseconds. */
export const membershipConnectMsMax = 1_000;

/** Longest time that the answer to a renewal may take beyond the server's own limit, in milliseconds; then the connection counts as dead. */
export const membershipAnswerDelayMsMax = 300;

/** After the server was lost, a renewal waits this long for its return, in milliseconds. */
export const membershipOutageWaitMsMax = 500;

/** Time limit of any other coordination statement, in milliseconds. */
export const coordinationStatementMsMax = 3_000;

/** Longest time that any other coordination statement waits for a lock, in milliseconds. */
export const coordinationLockMsMax = 1_500;

/** Longest time that any other coordination call waits for a connection, in milliseconds. */
export const coordinationConnectMsMax = 2_000;

/** Longest time that the answer to any other coordination statement may take beyond the server's own limit, in milliseconds. */
export const coordinationAnswerDelayMsMax = 1_000;

/** After the server was lost, any other coordination call waits this long for its return, in milliseconds. */
export const coordinationOutageWaitMsMax = 1_000;

/** Maximum number of a node's connections for coordination, besides one that renews its membership and one that receives hints. */
export const coordinationConnectionsMax = 2;

/** How often the hint connection is checked, in milliseconds: a connection that is cut off silently delivers no hints. */
export const hintsCheckEveryMs = 3_000;

/** Time limit for an answer on the hint connection, and for opening it, in milliseconds. */
export const hintsAnswerMsMax = 2_000;

export const membershipLimits: CallLimits = {
  name: "membership",
  connectionsMax: 1,
  session: {
    statementMsMax: membershipStatementMsMax,
    lockMsMax: membershipLockMsMax,
    idleInTransactionMsMax: membershipStatementMsMax,
  },
  waits: { connectMsMax: membershipConnectMsMax, outageMsMax: membershipOutageWaitMsMax },
  answerDelayMsMax: membershipAnswerDelayMsMax,
};

export const usualLimits: CallLimits = {
  name: "coordination",
  connectionsMax: coordinationConnectionsMax,
  session: {
    statementMsMax: coordinationStatementMsMax,
    lockMsMax: coordinationLockMsMax,
    idleInTransactionMsMax: coordinationStatementMsMax,
  },
  waits: { connectMsMax: coordinationConnectMsMax, outageMsMax: coordinationOutageWaitMsMax },
  answerDelayMsMax: coordinationAnswerDelayMsMax,
};
