import { createDeferred, type Deferred } from "../lib/deferred.ts";

/** Wakes everyone who waits. It remembers nothing between two wakes, so check the condition before you wait. */
export class Wakeup {
  #next: Deferred<void> | undefined;

  wake(): void {
    const next = this.#next;
    this.#next = undefined;
    next?.resolve();
  }

  /** Resolves at the next wake, or when `signal` aborts. */
  async wait(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.#next ??= createDeferred<void>();
    const aborted = createDeferred<void>();
    const onAbort = (): void => aborted.resolve();
    signal.addEventListener("abort", onAbort, { once: true });
    await Promise.race([this.#next.promise, aborted.promise]);
    signal.removeEventListener("abort", onAbort);
  }
}
