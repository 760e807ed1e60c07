import { createDeferred } from "./deferred.ts";

/** Runs tasks with the same key one after another, and tasks with different keys concurrently. */
export class KeyedMutex<K> {
  readonly #tails = new Map<K, Promise<unknown>>();

  async run<T>(key: K, task: () => Promise<T>): Promise<T> {
    const previous = this.#tails.get(key) ?? Promise.resolve();
    const result = previous.then(task, task);
    const tail = result.catch(() => undefined);
    this.#tails.set(key, tail);
    try {
      return await result;
    } finally {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    }
  }
  /** Runs a task that holds several keys. It queues for all of them at the same moment, so two tasks with several keys never deadlock. */
  async runAll<T>(keys: readonly K[], task: () => Promise<T>): Promise<T> {
    const done = createDeferred<void>();
    const turns = keys.map((key) => {
      const begun = createDeferred<void>();
      void this.run(key, async () => {
        begun.resolve();
        await done.promise;
      });
      return begun.promise;
    });
    try {
      await Promise.all(turns);
      return await task();
    } finally {
      done.resolve();
    }
  }
}
