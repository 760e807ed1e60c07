import { type Backoff, pause, pauseMs } from "./lib/backoff.ts";
import { withUnknownOutcome, SteleError } from "./stele-error.ts";

export const retriesDefault = 4;
const backoff: Backoff = { baseMs: 200, maxMs: 10_000 };
/** Longest pause before a retry that a broker can ask for, in milliseconds. */
const retryAfterMsMax = 60_000;

export interface RetryOptions {
  readonly retries: number;
  /** Whether the call may be repeated even if an earlier try may have taken effect. */
  readonly isRepeatable: boolean;
  readonly signal: AbortSignal | undefined;
}

/**
 * Runs `attempt`, and repeats it where that can help and is safe. `isDoubtful` is true for a try after one that may have taken effect.
 * @throws the last error of `attempt`, or the reason of an aborted signal.
 */
export async function withRetries<Result>(
  attempt: (isDoubtful: boolean) => Promise<Result>,
  { retries, isRepeatable, signal }: RetryOptions,
): Promise<Result> {
  let isDoubtful = false;
  for (let tries = 0; ; tries += 1) {
    signal?.throwIfAborted();
    try {
      return await attempt(isDoubtful);
    } catch (error) {
      if (!(error instanceof SteleError)) throw error;
      if (tries >= retries || !mayRepeat(error, isRepeatable)) throw isDoubtful ? withUnknownOutcome(error) : error;
      isDoubtful ||= !error.wasRefused;
      await pause(toPauseMs(error, tries), signal);
    }
  }
}

/** Whether the same call may be repeated after this error. */
export function mayRepeat({ retry, wasRefused }: SteleError, isRepeatable: boolean): boolean {
  return retry && (isRepeatable || wasRefused);
}

/** How long to wait after a failed try, in milliseconds. `tries` counts the tries before that one. */
export function toPauseMs({ retryAfterMs = 0 }: SteleError, tries: number): number {
  return Math.max(pauseMs(tries, backoff), Math.min(retryAfterMs, retryAfterMsMax));
}
