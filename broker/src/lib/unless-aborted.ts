import type { CancelSignal } from "./cancellation.ts";

/** Returns the result of `promise`, or undefined if one of the signals aborts first. The promise keeps running. */
export function unlessAborted<T>(promise: Promise<T>, signals: readonly CancelSignal[]): Promise<T | undefined> {
  if (signals.some(({ aborted }) => aborted)) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    const forget = (): void => {
      for (const signal of signals) signal.removeEventListener("abort", abandon);
    };
    const abandon = (): void => {
      forget();
      resolve(undefined);
    };
    for (const signal of signals) signal.addEventListener("abort", abandon, { once: true });
    promise.then(resolve, reject).finally(forget);
  });
}
