import { setImmediate as nextTurn } from "node:timers/promises";
import { rpcSliceMs } from "../../limits.ts";

/** Divides the event loop among batches: in each turn of the loop one batch starts members, for a bounded time. */
export class Slices {
  #last: Promise<void> = Promise.resolve();

  /** Resolves when the caller may start members. */
  next(): Promise<void> {
    this.#last = this.#last.then(() => nextTurn());
    return this.#last;
  }
}

/** The slice of one batch. */
export class Slice {
  readonly #slices: Slices;
  #endsAt = 0;

  constructor(slices: Slices) {
    this.#slices = slices;
  }

  /** Whether the next member has to wait for another slice. */
  get isOver(): boolean {
    return performance.now() >= this.#endsAt;
  }

  /** Resolves when the next slice begins. */
  async next(): Promise<void> {
    await this.#slices.next();
    this.#endsAt = performance.now() + rpcSliceMs;
  }
}
