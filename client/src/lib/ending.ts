import { onAbort } from "./on-abort.ts";

/**
 * A signal that a timer or the caller's signal can abort. `AbortSignal.any` is not used: Node 20 may collect what it returns as garbage, and then the caller's
 * signal ends nothing.
 */
export class Ending {
  readonly #controller = new AbortController();
  readonly #forgetOuter: (() => void) | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(outer: AbortSignal | undefined) {
    if (outer?.aborted === true) this.abort(outer.reason);
    this.#forgetOuter = outer && onAbort(outer, () => this.abort(outer.reason));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason?: unknown): void {
    this.#controller.abort(reason);
  }

  /** Aborts after `ms`, instead of an earlier timer. */
  abortAfter(ms: number, toReason: () => unknown): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.abort(toReason()), ms);
  }

  stopTimer(): void {
    clearTimeout(this.#timer);
  }

  /** The result of a task, however long that ignores the signal. @throws what the task throws; the reason of the signal once it is aborted. */
  race<Result>(task: Promise<Result>): Promise<Result> {
    const { signal } = this;
    return new Promise((resolve, reject) => {
      const stop = (): void => reject(signal.reason);
      if (signal.aborted) stop();
      signal.addEventListener("abort", stop);
      void task.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
    });
  }

  /** Forgets the timer and the caller's signal. */
  close(): void {
    this.stopTimer();
    this.#forgetOuter?.();
  }
}
