import { rpcSliceMs } from "../../limits.ts";
import { FairQueue, type QueuedCaller } from "../fair-queue.ts";

/** Divides the event loop among batches: in each turn of the loop one batch starts members, for a bounded time. The others wait in a {@link FairQueue}. */
export class Slices {
  readonly #waiting = new FairQueue<() => void>();
  #isScheduled = false;

  /** Resolves when a batch of the caller may start members. */
  next(caller: QueuedCaller): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.add(caller, resolve);
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
  readonly #caller: QueuedCaller;
  #endsAt = 0;

  constructor(slices: Slices, caller: QueuedCaller) {
    this.#slices = slices;
    this.#caller = caller;
  }

  /** Whether the next member has to wait for another slice. */
  get isOver(): boolean {
    return performance.now() >= this.#endsAt;
  }

  /** Resolves when the next slice begins. */
  async next(): Promise<void> {
    await this.#slices.next(this.#caller);
    this.#endsAt = performance.now() + rpcSliceMs;
  }
}
