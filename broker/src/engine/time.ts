import type { Clock } from "../ports/clock.ts";

/** A signal that aborts after `delayMs`, or with `parent`. Dispose it after the work, to cancel its timer. */
export class Deadline implements Disposable {
  readonly signal: AbortSignal;
  readonly #release: () => void;

  constructor(clock: Clock, delayMs: number, parent?: AbortSignal) {
    const controller = new AbortController();
    const abort = (): void => controller.abort();
    const cancel = clock.after(delayMs, abort);
    if (parent?.aborted === true) abort();
    parent?.addEventListener("abort", abort, { once: true });
    this.signal = controller.signal;
    this.#release = () => {
      cancel();
      parent?.removeEventListener("abort", abort);
    };
  }

  [Symbol.dispose](): void {
    this.#release();
  }
}
