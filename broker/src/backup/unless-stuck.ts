import { createDeferred } from "../lib/deferred.ts";

/** Longest time for one operation on a backup's files, in milliseconds: it syncs up to a whole database. */
const operationMsMax = 600_000;

/** How long an operation may go on after the abort, in milliseconds. */
const abortedMsMax = 1_000;

/**
 * Waits for an operation on a disk that may hang, such as a network's. If it hangs, it goes on: nobody can cancel it.
 * @throws Error if it takes too long; the reason of `signal` if it goes on after the abort; what the operation throws.
 */
export async function unlessStuck<T>(operation: Promise<T>, signal?: AbortSignal): Promise<T> {
  const stuck = createDeferred<never>();
  const seconds = operationMsMax / 1_000;
  const late = (): void => stuck.reject(new Error(`the disk did not answer for ${seconds} s`));
  let timer = setTimeout(late, operationMsMax);
  const onAbort = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => stuck.reject(signal?.reason), abortedMsMax);
  };
  if (signal?.aborted === true) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([operation, stuck.promise]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}
