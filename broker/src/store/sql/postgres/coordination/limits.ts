import type { PoolWaits } from "../pool.ts";
import type { SessionLimits } from "../session.ts";

/** What calls are held to, and how many connections they share. */
export interface CallLimits {
  /** What lines of the log call the connections. */
  readonly name: string;
  readonly connectionsMax: number;
  readonly session: SessionLimits;
  readonly waits: PoolWaits;
  /** After a statement's time, this much more for its answer, in milliseconds; then the connection counts as dead. */
  readonly answerDelayMsMax: number;
}

/** Longest that a statement which keeps a membership runs, in milliseconds: one that hangs must leave time for another try before the membership ends. */
export const membershipStatementMsMax = 1_000;

/** Longest that it waits for a lock, in milliseconds. */
export const membershipLockMsMax = 500;

/** Longest that its connection takes to open, in milliseconds. */
export const membershipConnectMsMax = 1_000;

/** What its answer may take on the way beyond the server's own limit, in milliseconds; then the connection counts as dead. */
export const membershipAnswerDelayMsMax = 300;

/** After the server was lost, it waits so long for its return, in milliseconds. */
export const membershipOutageWaitMsMax = 500;

/** Longest that any other statement between nodes runs, in milliseconds. */
export const coordinationStatementMsMax = 3_000;

/** Longest that it waits for a lock, in milliseconds. */
export const coordinationLockMsMax = 1_500;

/** Longest that it waits for a connection, in milliseconds. */
export const coordinationConnectMsMax = 2_000;

/** What its answer may take on the way beyond the server's own limit, in milliseconds; then the connection counts as dead. */
export const coordinationAnswerDelayMsMax = 1_000;

/** After the server was lost, it waits so long for its return, in milliseconds. */
export const coordinationOutageWaitMsMax = 1_000;

/** Connections of a node for what nodes agree on, beside one that keeps its membership and one that hears hints. */
export const coordinationConnectionsMax = 2;

/** How often the connection that hints come by is looked at, in milliseconds: one that is cut off silently gives none. */
export const hintsCheckEveryMs = 3_000;

/** Longest that an answer on that connection takes, and longest that opening it does, in milliseconds. */
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
