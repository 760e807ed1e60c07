/** Bounds of an exponential backoff. */
export interface BackoffLimits {
  readonly delayMsMin: number;
  readonly delayMsMax: number;
}

/** Maximum number of doublings; more would exceed every maximum. */
const exponentMax = 30;

/**
 * Delay before attempt `attempt + 1`; `attempt` counts failures from 1. The delay begins at the minimum, and doubles with each failure. Jitter (`fraction` in
 * [0,1)) adds up to as much again. The result never exceeds the maximum.
 */
export function backoffDelayMs(attempt: number, options: BackoffLimits & { readonly fraction: number }): number {
  const doubled = options.delayMsMin * 2 ** Math.min(Math.max(attempt - 1, 0), exponentMax);
  return Math.round(Math.min(doubled * (1 + options.fraction), options.delayMsMax));
}
