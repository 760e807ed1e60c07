import type { CancelSignal } from "../../lib/cancellation.ts";

/** Events that a subscription with concurrency or batches may take beyond its cursor. A kill may also repeat events whose progress was not written. */
const eventsAheadMax = 1_024;
/** Bytes of the events that a subscription with concurrency or batches may have taken and not finished. */
export const bytesAheadMax = 1024 * 1024;
/**
 * Bytes of these events of all subscriptions of a node. Beyond it, a subscription takes no event above its equal share: receivers that hang must neither take
 * all memory nor stop other subscriptions. A subscription without such events may always take one. A subscription that took more than its share earlier keeps
 * these events until they end. So all together may hold more: twice as much if they take their events at the same time, four times if a thousand take them one
 * after another.
 */
export const bytesAheadTotalMax = 64 * 1024 * 1024;

/**
 * When the number of holders has fallen to this fraction, the share of each has grown by a hundredth, and the waiting workers are checked again. To check
 * 10,000 takes 0.4 ms. Without this limit, a worker that holds one event at a time would cause a check with each event.
 */
const holdersFallMin = 0.99;

/** The events that all workers of a node hold together, beyond their cursors. */
export class SharedEventsAhead {
  /** Bytes of the events that have not ended. */
  #bytes = 0;
  /** Number of workers that hold such events. The others need no share. */
  #holders = 0;
  /** Highest number of holders since the last check of the waiting workers. */
  #holdersMax = 0;
  /** Workers that may take no event only because other workers hold too many bytes. */
  readonly waiting = new Set<EventsAhead>();

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether a worker that holds `held` bytes has its share. */
  isFullFor(held: number): boolean {
    return this.#bytes >= bytesAheadTotalMax && held >= bytesAheadTotalMax / this.#holders;
  }

  /** Call it when a worker that held `before` bytes holds `after`. */
  change(before: number, after: number): void {
    this.#bytes += after - before;
    this.#holders += Number(after > 0) - Number(before > 0);
    this.#holdersMax = Math.max(this.#holdersMax, this.#holders);
    if (this.#bytes >= bytesAheadTotalMax && this.#holders > this.#holdersMax * holdersFallMin) return;
    this.#holdersMax = this.#holders;
    for (const worker of this.waiting) worker.wake();
  }
}

export interface EventsAheadOptions {
  readonly shared: SharedEventsAhead;
  /** Counts the events beyond the cursor. */
  readonly countAhead: () => number;
  /** Ends each wait. */
  readonly stopping: CancelSignal;
}

/** The events that one worker holds beyond its cursor. Limits their number and bytes. */
export class EventsAhead {
  readonly #options: EventsAheadOptions;
  /** Bytes of the events that have not ended. */
  #bytes = 0;
  #onFreed: (() => void) | undefined;

  constructor(options: EventsAheadOptions) {
    this.#options = options;
  }

  take(bytes: number): void {
    this.#change(bytes);
  }

  /** Call it after events have ended, when `countAhead` does not count them any more. */
  free(bytes: number): void {
    this.#change(-bytes);
    this.#onFreed?.();
  }

  /** Call it when the worker has ended. */
  close(): void {
    this.free(this.#bytes);
  }

  /** Ends a wait for the other workers if the worker may take an event. */
  wake(): void {
    if (!this.isFull) this.#onFreed?.();
  }

  /** Waits until the worker may take an event, or stops. */
  async wait(): Promise<void> {
    while (this.isFull && !this.#options.stopping.aborted) await this.#nextFreeing();
  }

  /** Whether the worker must not take an event until others have ended. */
  get isFull(): boolean {
    return this.#isFullAlone || this.#options.shared.isFullFor(this.#bytes);
  }

  get #isFullAlone(): boolean {
    return this.#options.countAhead() >= eventsAheadMax || this.#bytes >= bytesAheadMax;
  }

  #change(bytes: number): void {
    const before = this.#bytes;
    this.#bytes += bytes;
    this.#options.shared.change(before, this.#bytes);
  }

  #nextFreeing(): Promise<void> {
    const { stopping, shared } = this.#options;
    return new Promise((resolve) => {
      const settle = (): void => {
        stopping.removeEventListener("abort", settle);
        shared.waiting.delete(this);
        this.#onFreed = undefined;
        resolve();
      };
      this.#onFreed = settle;
      if (!this.#isFullAlone) shared.waiting.add(this);
      stopping.addEventListener("abort", settle);
    });
  }
}
