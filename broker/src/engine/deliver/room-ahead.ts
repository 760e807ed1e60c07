import type { CancelSignal } from "../../lib/cancellation.ts";

/** Events that a subscription with concurrency or batches may have taken beyond its cursor. A kill repeats at most so many. */
const eventsAheadMax = 1_024;
/** The same, in bytes of content and extensions. */
const bytesAheadMax = 1024 * 1024;

export interface RoomAheadOptions {
  /** Events beyond the cursor. */
  readonly countAhead: () => number;
  /** Ends each wait. */
  readonly stopping: CancelSignal;
}

/** Keeps a worker from taking events too far beyond its cursor. */
export class RoomAhead {
  readonly #options: RoomAheadOptions;
  /** Of events that have not ended. */
  #bytes = 0;
  #onFreed: (() => void) | undefined;

  constructor(options: RoomAheadOptions) {
    this.#options = options;
  }

  take(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Call it when the events beyond the cursor are counted without those that ended. */
  free(bytes: number): void {
    this.#bytes -= bytes;
    this.#onFreed?.();
  }

  /** Returns when there is room, or the worker stops. */
  async wait(): Promise<void> {
    while (this.#isFull && !this.#options.stopping.aborted) await this.#nextFreeing();
  }

  get #isFull(): boolean {
    return this.#options.countAhead() >= eventsAheadMax || this.#bytes >= bytesAheadMax;
  }

  #nextFreeing(): Promise<void> {
    const { stopping } = this.#options;
    return new Promise((resolve) => {
      const settle = (): void => {
        stopping.removeEventListener("abort", settle);
        this.#onFreed = undefined;
        resolve();
      };
      this.#onFreed = settle;
      stopping.addEventListener("abort", settle);
    });
  }
}
