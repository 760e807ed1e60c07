import { createDeferred, type Deferred } from "./deferred.ts";
import { untilAborted } from "./until-aborted.ts";

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
    this.#next ??= createDeferred<void>();
    await untilAborted(this.#next.promise, signal);
  }
}
