import { createDeferred, type Deferred } from "../lib/deferred.ts";

interface Waiter {
  readonly blockNumber: number;
  readonly deferred: Deferred<boolean>;
}

/** How far a group's index is, for those that wait until it has a block. */
export class IndexProgress {
  #blockNumber = -1;
  #generation = -1;
  #version = 0;
  #waiters: Waiter[] = [];

  /** The newest indexed block; -1 before the first. */
  get blockNumber(): number {
    return this.#blockNumber;
  }

  /** Times that the index went back, as far as this node knows; -1 before it first looked. Asked only where nodes share the store. */
  get generation(): number {
    return this.#generation;
  }

  /** Another one each time that the index went back: what was read under an earlier one may be no more. */
  get version(): number {
    return this.#version;
  }

  /** From now on it is the index of that generation. */
  enterGeneration(generation: number): void {
    this.#version += 1;
    this.#generation = generation;
  }

  advanceTo(blockNumber: number): void {
    if (blockNumber <= this.#blockNumber) return;
    this.#blockNumber = blockNumber;
    if (this.#waiters.length === 0) return;
    const waiting = this.#waiters;
    this.#waiters = waiting.filter((waiter) => waiter.blockNumber > blockNumber);
    for (const waiter of waiting) {
      if (waiter.blockNumber <= blockNumber) waiter.deferred.resolve(true);
    }
  }

  /** What was indexed after the block is no more; who waits for a later block than that one cannot know what becomes of it. */
  rollBackTo(blockNumber: number): void {
    this.#version += 1;
    this.#blockNumber = Math.min(this.#blockNumber, blockNumber);
    const waiting = this.#waiters;
    this.#waiters = waiting.filter((waiter) => waiter.blockNumber <= blockNumber);
    for (const waiter of waiting) {
      if (waiter.blockNumber > blockNumber) waiter.deferred.resolve(false);
    }
  }

  /** True once the block is indexed, false when `signal` aborts first, or the chain is reorganised before that block. */
  async waitFor(blockNumber: number, signal: AbortSignal): Promise<boolean> {
    if (blockNumber <= this.#blockNumber) return true;
    if (signal.aborted) return false;
    const waiter: Waiter = { blockNumber, deferred: createDeferred() };
    this.#waiters.push(waiter);
    const abort = (): void => {
      this.#waiters = this.#waiters.filter((other) => other !== waiter);
      waiter.deferred.resolve(false);
    };
    signal.addEventListener("abort", abort, { once: true });
    const isIndexed = await waiter.deferred.promise;
    signal.removeEventListener("abort", abort);
    return isIndexed;
  }
}
