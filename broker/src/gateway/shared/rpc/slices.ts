import type { Caller } from "../../../engine/access/caller.ts";
import { allowManyListeners } from "../../../lib/cancellation.ts";
import { rpcSliceMs } from "../../limits.ts";
import { FairQueue, type QueuedCaller } from "../fair-queue.ts";

type SlicedCaller = QueuedCaller & Pick<Caller, "signal">;

/** Divides the event loop among batches: in each turn of the loop one batch starts members, for a bounded time. The others wait in a {@link FairQueue}. */
export class Slices {
  readonly #waiting = new FairQueue<() => void>();
  #isScheduled = false;

  /**
   * Resolves when a batch of the caller may start members. Also resolves at once when the caller's connection ends, because no budget counts the batch from
   * then on.
   */
  async next(caller: SlicedCaller): Promise<void> {
    const { signal } = caller;
    if (signal.aborted) return;
    allowManyListeners(signal); // A connection may pipeline batches.
    await new Promise<void>((resolve) => {
      const settle = (): void => {
        this.#waiting.delete(caller, settle);
        signal.removeEventListener("abort", settle);
        resolve();
      };
      this.#waiting.add(caller, settle);
      signal.addEventListener("abort", settle, { once: true });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.isEmpty) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#waiting.take()?.();
      this.#schedule();
    });
  }
}

/** The slice of one batch. */
export class Slice {
  readonly #slices: Slices;
  readonly #caller: SlicedCaller;
  #endsAt = 0;

  constructor(slices: Slices, caller: SlicedCaller) {
    this.#slices = slices;
    this.#caller = caller;
  }

  /** Whether the next member has to wait for another slice. */
  get isOver(): boolean {
    return performance.now() >= this.#endsAt;
  }

  /** Resolves with true when the next slice begins; with false once the caller's connection has ended. */
  async next(): Promise<boolean> {
    await this.#slices.next(this.#caller);
    this.#endsAt = performance.now() + rpcSliceMs;
    return !this.#caller.signal.aborted;
  }
}
