import { createDeferred } from "./deferred.ts";

/** Longest time, in milliseconds, that work continues before it yields to the event loop. */
const sliceMsMax = 5;

/**
 * Longest time, in milliseconds, that a resumed task continues while others wait. A turn for each step would cost more than most steps, and would send
 * the bytes of each step to its socket in a separate write.
 */
const resumedMsMax = 0.25;

/** Maximum number of waiting tasks that resume in one turn of the event loop. */
const resumedPerTurnMax = 64;

/** Measures and schedules slices. The Clock port implements it. */
export interface Turns {
  monotonic(): number;
  soon(action: () => void): void;
}

/** Where work pauses between its steps. */
export interface Pauses {
  pause(): Promise<void> | undefined;
}

/**
 * Cuts long work into slices, so that it never blocks the event loop for long. Workers that should take turns share one object. Each calls `pause`
 * between its steps and waits there when the slice of this turn is used up. Tasks resume in the order in which they paused.
 */
export class TimeSlices implements Pauses {
  readonly #turns: Turns;
  readonly #waiting = new Set<() => void>();
  /** Start of this turn's slice; undefined before any work. */
  #startedAt: number | undefined;
  /** When a task last resumed. */
  #resumedAt = Number.NEGATIVE_INFINITY;
  /** Requested turns that have not come yet. */
  #scheduled = 0;

  constructor(turns: Turns) {
    this.#turns = turns;
  }

  /** Returns undefined while the slice lasts, so that a step that need not wait costs nothing. */
  pause(): Promise<void> | undefined {
    const now = this.#turns.monotonic();
    const mayContinue = this.#waiting.size === 0 || now - this.#resumedAt < resumedMsMax;
    if (mayContinue && !this.#isUsedUp(now)) return undefined;
    const { promise, resolve } = createDeferred<void>();
    this.#waiting.add(resolve);
    this.#schedule();
    return promise;
  }

  #isUsedUp(now: number): boolean {
    if (this.#startedAt === undefined) {
      this.#startedAt = now;
      this.#turns.soon(() => {
        this.#startedAt = undefined;
      });
    }
    return now - this.#startedAt >= sliceMsMax;
  }

  /** One call of `soon` per task, so that each task runs to its next wait before the next call. */
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
    const now = this.#turns.monotonic();
    if (this.#isUsedUp(now)) return;
    const [resume] = this.#waiting;
    if (resume === undefined) return;
    this.#waiting.delete(resume);
    this.#resumedAt = now;
    resume();
  }
}

/** Runs a step for each item. The first slice runs at once. @throws what a step throws. */
export async function inSlices<T>(items: Iterable<T>, slices: Pauses, step: (item: T) => void): Promise<void> {
  for (const item of items) {
    step(item);
    const pause = slices.pause();
    if (pause !== undefined) await pause;
  }
}
