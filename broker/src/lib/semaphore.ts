import { allowManyListeners, type CancelSignal } from "./cancellation.ts";

/** A semaphore: runs a limited number of tasks at once; the others wait in order. */
export class Semaphore {
  #free: number;
  /** The waiting tasks, as the functions that start them. */
  readonly #waiting = new Set<(isMine: boolean) => void>();

  constructor(atOnce: number) {
    this.#free = atOnce;
  }

  /** Returns the result of `task`; undefined, without starting it, if `signal` aborts before its turn. */
  async run<T>(task: () => Promise<T>, signal: CancelSignal): Promise<T | undefined> {
    if (this.#free > 0) this.#free -= 1;
    else if (!(await this.#wait(signal))) return undefined;
    try {
      return await task();
    } finally {
      this.#giveBack();
    }
  }

  #wait(signal: CancelSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    allowManyListeners(signal); // Many tasks of one caller may wait, such as the subscriptions of a STOMP connection.
    return new Promise((resolve) => {
      const abort = (): void => settle(false);
      const settle = (isMine: boolean): void => {
        this.#waiting.delete(settle);
        signal.removeEventListener("abort", abort);
        resolve(isMine);
      };
      this.#waiting.add(settle);
      signal.addEventListener("abort", abort, { once: true });
    });
  }

  /** Hands the slot directly to the longest waiter, so that no newcomer can take it. */
  #giveBack(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free += 1;
    else next(true);
  }
}
