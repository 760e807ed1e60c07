import { createDeferred } from "./deferred.ts";

/** Longest time, in milliseconds, that work goes on before everything else gets a turn of the event loop. */
const sliceMsMax = 5;

/** Waiting tasks that resume in one turn of the event loop, at most. */
const resumedPerTurnMax = 64;

/** What slices are measured and scheduled by. The Clock port is one. */
export interface Turns {
  monotonic(): number;
  soon(action: () => void): void;
}

/**
 * Cuts long work into slices, so that it never holds the event loop for long. All who work in slices share one object: each calls
 * `pause` between its steps, and waits there once the slice of this turn is used up. Tasks resume in the order in which they paused.
 */
export class TimeSlices {
  readonly #turns: Turns;
  readonly #waiting = new Set<() => void>();
  /** When the slice of this turn began; undefined before anybody worked in it. */
  #startedAt: number | undefined;
  /** Turns that were asked for and have not come. */
  #scheduled = 0;

  constructor(turns: Turns) {
    this.#turns = turns;
  }

  /** Undefined while the slice lasts, so that a step which need not wait costs nothing. */
  pause(): Promise<void> | undefined {
    if (this.#waiting.size === 0 && !this.#isUsedUp()) return undefined;
    const { promise, resolve } = createDeferred<void>();
    this.#waiting.add(resolve);
    this.#schedule();
    return promise;
  }

  #isUsedUp(): boolean {
    const now = this.#turns.monotonic();
    if (this.#startedAt === undefined) {
      this.#startedAt = now;
      this.#turns.soon(() => {
        this.#startedAt = undefined;
      });
    }
    return now - this.#startedAt >= sliceMsMax;
  }

  /** One call of `soon` for each task: what a task does until it waits again is over before the next call. */
  #schedule(): void {
    while (this.#scheduled < Math.min(this.#waiting.size, resumedPerTurnMax)) {
      this.#scheduled += 1;
      this.#turns.soon(() => {
        this.#scheduled -= 1;
        this.#resumeNext();
        this.#schedule();
      });
    }
  }

  #resumeNext(): void {
    if (this.#isUsedUp()) return;
    const [resume] = this.#waiting;
    if (resume === undefined) return;
    this.#waiting.delete(resume);
    resume();
  }
}
