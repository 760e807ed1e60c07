import { SteleError } from "@stele/client";

/** Pause before the next question, in milliseconds. */
const againMs = 3000;

/**
 * Options of a query that no interval repeats: it asks again after a failure that may end, such as an outage of the broker. Meanwhile, the query's
 * `failureReason` is the failure: `error` would be null while the query asks again, and a screen reader would say the failure anew each time.
 */
export const askAgain = {
  retry: (_failures: number, error: unknown): boolean => error instanceof SteleError && error.retry,
  retryDelay: againMs,
};
