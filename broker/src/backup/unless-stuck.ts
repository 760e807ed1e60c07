import { createDeferred } from "../lib/deferred.ts";

/** Longest time for one operation on a backup's files, in milliseconds: it syncs up to a whole database. */
const operationMsMax = 600_000;

/** How long an operation may continue after the abort, or while an earlier one hangs, in milliseconds. */
const abortedMsMax = 1_000;

/** Operations that nobody waits for any more. Each may keep one of the four threads on which Node.js uses files and looks up host names. */
const stuck = new Set<Promise<unknown>>();

/** Node.js ends a process only after the last operation on a file, so one that hangs would keep the process for ever. */
function killSelf(): void {
  process.kill(process.pid, "SIGKILL");
}

/** @throws Error while an operation of an earlier backup hangs: more of them would take all threads. */
export function checkNoneStuck(): void {
  if (stuck.size > 0)
    throw new Error("a disk still does not answer an earlier backup: wait for the disk, or restart the broker");
}

/**
 * Waits for an operation on a disk that may hang, such as a network disk. Nobody can cancel an operation that hangs, and it would keep the process from ending.
 * So the process then kills itself when it exits.
 * @throws Error if the operation takes too long; the reason of `signal` if the operation continues after the abort; the operation's own error.
 */
export async function unlessStuck<T>(operation: Promise<T>, signal?: AbortSignal): Promise<T> {
  const ended = createDeferred<never>();
  const giveUp = (reason: unknown): void => {
    noteStuck(operation);
    ended.reject(reason);
  };
  const seconds = operationMsMax / 1_000;
  const late = (): void => giveUp(new Error(`the disk did not answer for ${seconds} s`));
  // Closing a file waits for the write that hangs.
  let timer = setTimeout(late, stuck.size > 0 ? abortedMsMax : operationMsMax);
  const onAbort = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => giveUp(signal?.reason), abortedMsMax);
  };
  if (signal?.aborted === true) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([operation, ended.promise]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}

function noteStuck(operation: Promise<unknown>): void {
  if (stuck.size === 0) process.on("exit", killSelf);
  stuck.add(operation);
  const forget = (): void => {
    stuck.delete(operation);
    if (stuck.size === 0) process.off("exit", killSelf);
  };
  operation.then(forget, forget);
}
