import { turnsSliceMs, turnTimeoutMs } from "../limits.ts";

/** Call it when the admitted call has ended. */
export type Leave = () => void;

/** Whoever calls over one connection by one protocol, compared by identity. Its waiting calls form one queue. */
type Caller = object;

interface Waiting {
  readonly resolve: (leave: Leave | undefined) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * A fair semaphore: limits the calls that run at once. Waiting callers take turns, one call each. After `turnsSliceMs` of turns, the event loop has
 * its turn. The limits on connections and batches bound the number of waiting calls.
 */
export class Turns {
  readonly #runningMax: number;
  /** Waiting calls by caller; callers in the order of their next turns. */
  readonly #waiting = new Map<Caller, Set<Waiting>>();
  #running = 0;
  #sliceBegan = 0;
  #isPaused = false;

  constructor(runningMax: number) {
    this.#runningMax = runningMax;
  }

  /** Returns at once if the call may run. Else waits until it may, for up to `turnTimeoutMs`; resolves with undefined after the timeout. */
  enter(caller: Caller): Leave | Promise<Leave | undefined> {
    if (this.#running < this.#runningMax && this.#waiting.size === 0) return this.#admit();
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#expire(caller, waiting), turnTimeoutMs);
      timer.unref(); // A broker that has stopped must not wait for the timer.
      const waiting: Waiting = { resolve, timer };
      const others = this.#waiting.get(caller);
      if (others === undefined) this.#waiting.set(caller, new Set([waiting]));
      else others.add(waiting);
    });
  }

  #expire(caller: Caller, waiting: Waiting): void {
    const calls = this.#waiting.get(caller);
    calls?.delete(waiting);
    if (calls?.size === 0) this.#waiting.delete(caller);
    waiting.resolve(undefined);
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
      if (performance.now() - this.#sliceBegan >= turnsSliceMs) this.#pause();
      else this.#admitNext();
    }
  }

  #admitNext(): void {
    const next = this.#takeNext();
    if (next === undefined) return;
    clearTimeout(next.timer);
    next.resolve(this.#admit());
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
      const [next] = calls;
      if (next !== undefined) calls.delete(next);
      this.#waiting.delete(caller);
      if (calls.size > 0) this.#waiting.set(caller, calls);
      return next;
    }
    return undefined;
  }
}
