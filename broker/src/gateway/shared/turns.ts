import { turnsSliceMs, turnTimeoutMs } from "../limits.ts";

/** Gives the place back. */
export type Leave = () => void;

/** One connection and protocol: all of its calls share a turn. */
type Caller = object;

interface Waiting {
  readonly since: number;
  readonly resolve: (leave: Leave | undefined) => void;
}

/**
 * Lets a bounded number of calls in at once. Where some wait, callers have one turn each, one after the other, and the event loop has its own in
 * between. The limits on connections, and on the batches that run on them, bound the number of waiting calls.
 */
export class Turns {
  readonly #runningMax: number;
  /** Waiting calls by caller; callers in the order of their next turns. */
  readonly #waiting = new Map<Caller, Waiting[]>();
  #running = 0;
  #sliceBegan = 0;
  #isPaused = false;

  constructor(runningMax: number) {
    this.#runningMax = runningMax;
  }

  /** Undefined when the wait was too long. */
  enter(caller: Caller): Leave | Promise<Leave | undefined> {
    if (this.#running < this.#runningMax && this.#waiting.size === 0) return this.#admit();
    return new Promise((resolve) => {
      const waiting = { since: performance.now(), resolve };
      const others = this.#waiting.get(caller);
      if (others === undefined) this.#waiting.set(caller, [waiting]);
      else others.push(waiting);
    });
  }

  #admit(): Leave {
    this.#running += 1;
    return () => {
      this.#running -= 1;
      this.#admitWaiting();
    };
  }

  #admitWaiting(): void {
    while (this.#running < this.#runningMax && this.#waiting.size > 0 && !this.#isPaused) {
      const now = performance.now();
      if (now - this.#sliceBegan >= turnsSliceMs) this.#pause();
      else this.#admitNext(now);
    }
  }

  #admitNext(now: number): void {
    const next = this.#takeNext();
    if (next === undefined) return;
    next.resolve(now - next.since > turnTimeoutMs ? undefined : this.#admit());
  }

  #pause(): void {
    this.#isPaused = true;
    setImmediate(() => {
      this.#isPaused = false;
      this.#sliceBegan = performance.now();
      this.#admitWaiting();
    });
  }

  #takeNext(): Waiting | undefined {
    for (const [caller, calls] of this.#waiting) {
      this.#waiting.delete(caller);
      const next = calls.shift();
      if (calls.length > 0) this.#waiting.set(caller, calls);
      return next;
    }
    return undefined;
  }
}
