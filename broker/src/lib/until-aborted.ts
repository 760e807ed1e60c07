import type { CancelSignal } from "./cancellation.ts";

/** The result of `work`, or undefined if one of the signals aborts first; the work then continues, and its result or failure is ignored. */
export function untilAborted<T>(work: Promise<T>, ...signals: readonly CancelSignal[]): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const forget = (): void => {
      for (const signal of signals) signal.removeEventListener("abort", abandon);
    };
    const abandon = (): void => {
      forget();
      resolve(undefined);
    };
    for (const signal of signals) signal.addEventListener("abort", abandon, { once: true });
    if (signals.some(({ aborted }) => aborted)) abandon();
    work.then(resolve, reject).finally(forget);
  });
}
