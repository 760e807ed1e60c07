import { createDeferred, type Deferred } from "./deferred.ts";
import { untilAborted } from "./until-aborted.ts";

/** Wakes everyone who waits. It remembers nothing between two wakes, so check the condition before you wait. */
export class Wakeup {
  /** One promise for each wait. A shared promise would keep the callbacks of aborted waits in memory until the next wake, which may be days away. */
  readonly #waiters = new Set<Deferred<void>>();

  wake(): void {
    for (const waiter of this.#waiters) waiter.resolve();
    this.#waiters.clear();
  }

  /** Resolves at the next wake, or when `signal` aborts. */
  async wait(signal: AbortSignal): Promise<void> {
    const waiter = createDeferred<void>();
    this.#waiters.add(waiter);
    await untilAborted(waiter.promise, signal);
    this.#waiters.delete(waiter);
  }
}
