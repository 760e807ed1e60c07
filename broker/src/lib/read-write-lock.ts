import { createDeferred, type Deferred } from "./deferred.ts";

/**
 * A read-write lock: any number of shared tasks run concurrently, an exclusive one runs alone. A waiting exclusive task goes before new shared ones.
 */
export class ReadWriteLock {
  #inside = 0;
  #emptied: Deferred<void> | undefined;
  #closed: Deferred<void> | undefined;

  async shared<T>(task: () => Promise<T>): Promise<T> {
    while (this.#closed !== undefined) await this.#closed.promise;
    this.#inside += 1;
    try {
      return await task();
    } finally {
      this.#inside -= 1;
      if (this.#inside === 0) this.#emptied?.resolve();
    }
  }

  async exclusive<T>(task: () => Promise<T>): Promise<T> {
    while (this.#closed !== undefined) await this.#closed.promise;
    const closed = createDeferred<void>();
    this.#closed = closed;
    try {
      if (this.#inside > 0) await this.#untilEmpty();
      return await task();
    } finally {
      this.#closed = undefined;
      closed.resolve();
    }
  }

  async #untilEmpty(): Promise<void> {
    const emptied = createDeferred<void>();
    this.#emptied = emptied;
    await emptied.promise;
    this.#emptied = undefined;
  }
}
