/** Bounds of an exponential backoff. */
export interface BackoffLimits {
  readonly delayMsMin: number;
  readonly delayMsMax: number;
}

/** Doublings that are computed; any more would pass every maximum. */
const exponentMax = 30;

/**
 * Delay before attempt `attempt + 1`, where `attempt` counts failures from 1: doubles from the minimum to the maximum, then half of
 * it is fixed and half is multiplied by `fraction` in [0,1), so that many waiters spread out.
 */
export function backoffDelayMs(attempt: number, options: BackoffLimits & { readonly fraction: number }): number {
  const doubled = options.delayMsMin * 2 ** Math.min(Math.max(attempt - 1, 0), exponentMax);
  const capped = Math.min(doubled, options.delayMsMax);
  return Math.round(capped / 2 + (capped / 2) * options.fraction);
}
