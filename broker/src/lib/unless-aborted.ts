/** Returns the result of `promise`, or undefined if one of the signals aborts first. The promise keeps running. */
export function unlessAborted<T>(promise: Promise<T>, signals: readonly AbortSignal[]): Promise<T | undefined> {
  if (signals.some(({ aborted }) => aborted)) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    const done = new AbortController();
    const abandon = (): void => {
      done.abort();
      resolve(undefined);
    };
    for (const signal of signals) signal.addEventListener("abort", abandon, { once: true, signal: done.signal });
    promise.then(resolve, reject).finally(() => done.abort());
  });
}
