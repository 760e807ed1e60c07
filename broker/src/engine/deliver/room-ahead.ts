import type { CancelSignal } from "../../lib/cancellation.ts";

/** Events that a subscription with concurrency or batches may take beyond its cursor. A kill may also repeat events whose progress was not written. */
const eventsAheadMax = 1_024;
/** Bytes of the events that a subscription with concurrency or batches may have taken and not finished. */
export const bytesAheadMax = 1024 * 1024;
/**
 * Bytes of such events of all subscriptions of a node. Beyond it, each subscription keeps to its equal share: receivers that hang must neither take all
 * memory nor stop other subscriptions. A subscription without such events may always take one.
 */
export const bytesAheadTotalMax = 64 * 1024 * 1024;

/** What all workers of a node hold together. */
export class SharedRoom {
  /** Bytes of the events that have not ended. */
  bytes = 0;
  workers = 0;

  get share(): number {
    return bytesAheadTotalMax / this.workers;
  }
}

export interface RoomAheadOptions {
  readonly shared: SharedRoom;
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
    options.shared.workers += 1;
  }

  take(bytes: number): void {
    this.#bytes += bytes;
    this.#options.shared.bytes += bytes;
  }

  /** Call it after events have ended, when `countAhead` does not count them any more. */
  free(bytes: number): void {
    this.#bytes -= bytes;
    this.#options.shared.bytes -= bytes;
    this.#onFreed?.();
  }

  /** Call it when the worker has ended. */
  close(): void {
    this.free(this.#bytes);
    this.#options.shared.workers -= 1;
  }

  /** Waits until there is room, or the worker stops. */
  async wait(): Promise<void> {
    while (this.isFull && !this.#options.stopping.aborted) await this.#nextFreeing();
  }

  /** Whether the worker takes no event until others have ended. */
  get isFull(): boolean {
    const { countAhead, shared } = this.#options;
    if (countAhead() >= eventsAheadMax || this.#bytes >= bytesAheadMax) return true;
    return shared.bytes >= bytesAheadTotalMax && this.#bytes >= shared.share;
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
