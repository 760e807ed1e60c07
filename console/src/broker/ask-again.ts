import { SteleError } from "@stele/client";

/**
 * Pauses before the next question, in milliseconds: the first pause, the longest that the console chooses, and the longest that it accepts from a server, since
 * a proxy may ask for a day. The console's own maximum is short, because a query in a pause does not ask at once when somebody comes back to the tab.
 */
const againMs = { first: 3000, last: 15_000, askedMax: 300_000 };

/** Damaged or dropped events. They rarely come back, and the broker would ask the chain each time. */
const lastingCodes: ReadonlySet<number | undefined> = new Set([200208, 200209]);

/**
 * Options of a query that no interval repeats: it asks again, more and more rarely, after a failure that may end, such as an outage of the broker. Meanwhile,
 * the query's `failureReason` is the failure: `error` would be null while the query asks again, and a screen reader would say the failure anew each time.
 */
export const askAgain = {
  retry: (_failures: number, error: unknown): boolean =>
    error instanceof SteleError && error.retry && !lastingCodes.has(error.code),
  retryDelay: (failures: number, error: unknown): number => {
    const askedMs = error instanceof SteleError ? (error.retryAfterMs ?? 0) : 0;
    return Math.max(Math.min(againMs.first * 2 ** failures, againMs.last), Math.min(askedMs, againMs.askedMax));
  },
};
