/** Bounds of an exponential backoff. */
export interface BackoffLimits {
  readonly delayMsMin: number;
  readonly delayMsMax: number;
}

/** Doublings that are computed; any more would pass every maximum. */
const exponentMax = 30;

/**
 * Delay before attempt `attempt + 1`, where `attempt` counts failures from 1: doubles from the minimum, and grows by
 * `fraction` in [0,1) of itself, so that many waiters spread out; never over the maximum.
 */
export function backoffDelayMs(attempt: number, options: BackoffLimits & { readonly fraction: number }): number {
  const doubled = options.delayMsMin * 2 ** Math.min(Math.max(attempt - 1, 0), exponentMax);
  return Math.round(Math.min(doubled * (1 + options.fraction), options.delayMsMax));
}
