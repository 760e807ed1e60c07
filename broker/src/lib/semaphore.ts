import { allowManyListeners, type CancelSignal } from "./cancellation.ts";

/** Entries that the stack may have beyond twice the number of waiting tasks. With more, it drops the entries of tasks that have given up. */
const stackSpare = 16;

/** With `isNewestFirst`, one in this many hand-overs still goes to the task that has waited longest, so that it does not starve. */
const handOversPerOldest = 4;

/** Starts a waiting task if `isMine`; else ends its wait. */
type Settle = (isMine: boolean) => void;

export interface SemaphoreOptions {
  /** Whether the newest waiting task goes first. Even then, every fourth turn goes to the oldest one. */
  readonly isNewestFirst?: boolean;
}

/** A semaphore: runs a limited number of tasks at once; the others wait in order. */
export class Semaphore {
  #free: number;
  readonly #isNewestFirst: boolean;
  readonly #waiting = new Set<Settle>();
  /** With `isNewestFirst`: the waiting tasks in order, and some tasks that have given up. */
  #stack: Settle[] = [];
  #handOvers = 0;

  constructor(atOnce: number, { isNewestFirst = false }: SemaphoreOptions = {}) {
    this.#free = atOnce;
    this.#isNewestFirst = isNewestFirst;
  }

  /** Returns the result of `task`. If `signal` aborts before the task's turn, returns undefined and does not start it. */
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
      this.#add(settle);
      signal.addEventListener("abort", abort, { once: true });
    });
  }

  #add(settle: Settle): void {
    this.#waiting.add(settle);
    if (!this.#isNewestFirst) return;
    this.#stack.push(settle);
    if (this.#stack.length > 2 * this.#waiting.size + stackSpare) this.#stack = [...this.#waiting];
  }

  /** Hands the slot directly to a waiter, so that no newcomer can take it. */
  #giveBack(): void {
    const next = this.#next();
    if (next === undefined) this.#free += 1;
    else next(true);
  }

  #next(): Settle | undefined {
    this.#handOvers += 1;
    if (this.#isNewestFirst && this.#handOvers % handOversPerOldest !== 0) return this.#newest();
    return this.#waiting.values().next().value;
  }

  #newest(): Settle | undefined {
    for (let last = this.#stack.pop(); last !== undefined; last = this.#stack.pop())
      if (this.#waiting.has(last)) return last;
    return undefined;
  }
}
