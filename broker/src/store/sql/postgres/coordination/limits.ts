import type { PoolWaits } from "../pool.ts";
import type { SessionLimits } from "../session.ts";

/** What calls are held to, in milliseconds, and how many connections they share. */
export interface CallLimits {
  readonly connectionsMax: number;
  readonly session: SessionLimits;
  readonly waits: PoolWaits;
  /** After a statement's time, this much more for its answer; then the connection counts as dead. */
  readonly answerDelayMsMax: number;
}

/** Of calls that keep a membership: a try that hangs must leave time for another one before the membership ends. */
export const membershipLimits: CallLimits = {
  connectionsMax: 1,
  session: { statementMsMax: 1_000, lockMsMax: 500, idleInTransactionMsMax: 2_000 },
  waits: { connectMsMax: 1_000, outageMsMax: 500 },
  answerDelayMsMax: 300,
};

/** Of all others. */
export const usualLimits: CallLimits = {
  connectionsMax: 2,
  session: { statementMsMax: 3_000, lockMsMax: 1_500, idleInTransactionMsMax: 3_000 },
  waits: { connectMsMax: 2_000, outageMsMax: 1_000 },
  answerDelayMsMax: 1_000,
};

/** How often the connection that hints come by is looked at, in milliseconds: one that is cut off silently gives none. */
export const hintsCheckEveryMs = 3_000;

/** Longest that an answer on that connection takes, and longest that opening it does, in milliseconds. */
export const hintsAnswerMsMax = 2_000;
