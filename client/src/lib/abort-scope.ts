import { onAbort } from "./on-abort.ts";

/** Longest delay of a timer, in milliseconds. A timer with a longer one, such as Infinity, would fire at once. */
const timerMsMax = 2 ** 31 - 1;

/**
 * A signal that a timer or the caller's signal can abort. It does not use `AbortSignal.any`: Node 20 may garbage-collect the combined signal, and then the
 * caller's signal has no effect.
 */
export class AbortScope {
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

  /** Aborts after `ms` with the reason that `toReason` returns. Replaces an earlier timer. */
  abortAfter(ms: number, toReason: () => unknown): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.abort(toReason()), Math.min(ms, timerMsMax));
  }

  stopTimer(): void {
    clearTimeout(this.#timer);
  }

  /** Resolves with the task, or rejects once the signal is aborted, even if the task ignores the signal. @throws the task's error; the signal's reason. */
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
