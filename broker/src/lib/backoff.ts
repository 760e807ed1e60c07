/** Bounds of an exponential backoff. */
export interface BackoffLimits {
  readonly delayMsMin: number;
  readonly delayMsMax: number;
}

/** Maximum number of doublings; more would exceed every maximum. */
const exponentMax = 30;

/**
 * Delay before attempt `attempt + 1`, where `attempt` counts failures from 1. Doubles from the minimum, then adds up to as much again as jitter
 * (`fraction` in [0,1)); never exceeds the maximum.
 */
export function backoffDelayMs(attempt: number, options: BackoffLimits & { readonly fraction: number }): number {
  const doubled = options.delayMsMin * 2 ** Math.min(Math.max(attempt - 1, 0), exponentMax);
  return Math.round(Math.min(doubled * (1 + options.fraction), options.delayMsMax));
}
