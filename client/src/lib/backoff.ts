import { onAbort } from "./on-abort.ts";

export interface Backoff {
  readonly baseMs: number;
  readonly maxMs: number;
}

/**
 * The pause after a failed try, in milliseconds; `tries` counts the tries before that one. The pause doubles up to `maxMs`. Half of it is random, so that many
 * clients do not return at the same time.
 */
export function pauseMs(tries: number, { baseMs, maxMs }: Backoff): number {
  const full = Math.min(maxMs, baseMs * 2 ** Math.min(tries, 30));
  return full * (0.5 + Math.random() / 2);
}

/** Resolves after `ms`. @throws the reason of `signal` once it is aborted. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const timer = setTimeout(() => {
      forget?.();
      resolve();
    }, ms);
    const forget =
      signal &&
      onAbort(signal, () => {
        clearTimeout(timer);
        reject(signal.reason);
      });
  });
}
