import { turnsSliceMs, turnTimeoutMs } from "../limits.ts";
import { FairQueue, type QueuedCaller } from "./fair-queue.ts";

/** Call it when the admitted call has ended. */
export type Leave = () => void;

interface Waiting {
  readonly resolve: (leave: Leave | undefined) => void;
  readonly timer: NodeJS.Timeout;
}

/** A fair semaphore: limits the calls that run at once. Others wait in a {@link FairQueue}. After `turnsSliceMs` of turns, the event loop has its turn. */
export class Turns {
  readonly #runningMax: number;
  readonly #waiting = new FairQueue<Waiting>();
  #running = 0;
  #sliceBegan = 0;
  #isPaused = false;

  constructor(runningMax: number) {
    this.#runningMax = runningMax;
  }

  /** Returns at once if the call may run. Else waits until it may, for up to `turnTimeoutMs`; resolves with undefined after the timeout. */
  enter(caller: QueuedCaller): Leave | Promise<Leave | undefined> {
    if (this.#running < this.#runningMax && this.#waiting.isEmpty) return this.#admit();
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#expire(caller, waiting), turnTimeoutMs);
      timer.unref(); // A broker that has stopped must not wait for the timer.
      const waiting: Waiting = { resolve, timer };
      this.#waiting.add(caller, waiting);
    });
  }

  #expire(caller: QueuedCaller, waiting: Waiting): void {
    this.#waiting.delete(caller, waiting);
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
    while (this.#running < this.#runningMax && !this.#waiting.isEmpty && !this.#isPaused) {
      if (performance.now() - this.#sliceBegan >= turnsSliceMs) this.#pause();
      else this.#admitNext();
    }
  }

  #admitNext(): void {
    const next = this.#waiting.take();
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
}
