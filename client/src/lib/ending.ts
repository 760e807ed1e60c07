/**
 * A signal that a timer or the caller's signal can abort. `AbortSignal.any` is not used: Node 20 may collect what it returns as garbage, and then the caller's
 * signal ends nothing.
 */
export class Ending {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #follow = (): void => this.abort(this.#outer?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(outer: AbortSignal | undefined) {
    this.#outer = outer;
    if (outer?.aborted === true) this.#follow();
    outer?.addEventListener("abort", this.#follow);
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
    this.#outer?.removeEventListener("abort", this.#follow);
  }
}
