import type { CancelSignal } from "../../lib/cancellation.ts";

/** Events that a subscription with concurrency or batches may take beyond its cursor. A kill may also repeat events whose progress was not written. */
const eventsAheadMax = 1_024;
/** Bytes of the events that a subscription with concurrency or batches may have taken and not finished. */
const bytesAheadMax = 1024 * 1024;

export interface RoomAheadOptions {
  /** Counts the events beyond the cursor. */
  readonly countAhead: () => number;
  /** Ends each wait. */
  readonly stopping: CancelSignal;
}

/** Limits how far beyond its cursor a worker takes events. */
export class RoomAhead {
  readonly #options: RoomAheadOptions;
  /** Bytes of the events that have not ended. */
  #bytes = 0;
  #onFreed: (() => void) | undefined;

  constructor(options: RoomAheadOptions) {
    this.#options = options;
  }

  take(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Call it after events have ended, when `countAhead` does not count them any more. */
  free(bytes: number): void {
    this.#bytes -= bytes;
    this.#onFreed?.();
  }

  /** Waits until there is room, or the worker stops. */
  async wait(): Promise<void> {
    while (this.isFull && !this.#options.stopping.aborted) await this.#nextFreeing();
  }

  /** Whether the worker takes no event until others have ended. */
  get isFull(): boolean {
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
