import { endOfBlock, type Position } from "../domain/position.ts";
import { createDeferred, type Deferred } from "../lib/deferred.ts";
import type { BlockRef } from "../ports/ledger.ts";
import { reorganisationBlocksMax } from "../ports/store.ts";

interface Waiter {
  readonly blockNumber: number;
  readonly deferred: Deferred<boolean>;
}

/** The newest indexed block of a group, as this node knows it. Callers can wait for a block. */
export class IndexProgress {
  #blockNumber = -1;
  #generation = -1;
  #version = 0;
  #rebuiltUpTo = -1;
  #waiters: Waiter[] = [];
  #seen: BlockRef[] = [];
  #isOutdated = false;

  /** The newest indexed block; -1 before the first. */
  get blockNumber(): number {
    return this.#blockNumber;
  }

  /** Number of rollbacks of the index that this node has seen; -1 before the node's first read of the index. Used only if nodes share the store. */
  get generation(): number {
    return this.#generation;
  }

  /** Changes with each rollback and each new generation: data read under an earlier version may be gone. */
  get version(): number {
    return this.#version;
  }

  /**
   * Blocks that this node has seen in the index, ascending. The first one is the newest block that no rollback can remove. They tell how far another node has
   * rolled the index back. Empty for a single node.
   */
  get seen(): readonly BlockRef[] {
    return this.#seen;
  }

  /** Whether the index lacks blocks that this node has seen in it, because another node emptied it or the database lost them. */
  get isRebuilding(): boolean {
    return this.#blockNumber < this.#rebuiltUpTo;
  }

  /**
   * Whether the chain ends before every block that this node has seen in the index, for example after a restore of the database and the chain. Then
   * the seen blocks say nothing about the index, and the readers must restart from its end. Until then the index counts as being rebuilt.
   */
  get isOutdated(): boolean {
    return this.#isOutdated;
  }

  /** Call it with the newest block of an index that another node emptied. While the index is rebuilt, a call with an earlier block changes nothing. */
  rebuildTo(blockNumber: number): void {
    this.#rebuiltUpTo = Math.max(this.#rebuiltUpTo, blockNumber);
  }

  /**
   * Call it when the index has the chain's newest block, although it lacks later blocks that this node saw. A reorg or a restore has left the chain shorter, so
   * these need not come again.
   */
  rebuildAtMostTo(blockNumber: number): void {
    this.#isOutdated = (this.#seen[0]?.number ?? -1) > blockNumber;
    if (this.#isOutdated) return;
    this.#rebuiltUpTo = Math.min(this.#rebuiltUpTo, blockNumber);
    this.#endRebuilding();
  }

  /** Call it when {@link isOutdated} is true, with all blocks to which the index can roll back, ascending. */
  seeAnew(blocks: readonly BlockRef[]): void {
    this.#seen = [...blocks];
    this.#isOutdated = false;
    this.#rebuiltUpTo = -1;
  }

  /** Call it with each block that this node has seen in the index, if nodes share the store. Ignores a block that is not above those before. */
  saw({ number, hash }: BlockRef): void {
    const last = this.#seen.at(-1);
    if (last !== undefined && last.number >= number) return;
    this.#seen.push({ number, hash });
    const isOld = (index: number): boolean => (this.#seen[index]?.number ?? number) < number - reorganisationBlocksMax;
    while (isOld(1)) this.#seen.shift();
  }

  /** Forgets the seen blocks after one that a rollback has kept. Keeps the oldest, which no rollback can remove: an index without it lacks blocks. */
  forgetSeen(after: number): void {
    this.#seen = this.#seen.filter(({ number }, index) => index === 0 || number <= after);
  }

  /** Sets the generation that this node has read from the store. */
  enterGeneration(generation: number): void {
    this.#version += 1;
    this.#generation = generation;
  }

  advanceTo(blockNumber: number): void {
    if (blockNumber <= this.#blockNumber) return;
    this.#blockNumber = blockNumber;
    this.#endRebuilding();
    if (this.#waiters.length === 0) return;
    const waiting = this.#waiters;
    this.#waiters = waiting.filter((waiter) => waiter.blockNumber > blockNumber);
    for (const waiter of waiting) {
      if (waiter.blockNumber <= blockNumber) waiter.deferred.resolve(true);
    }
  }

  /** Once the index is rebuilt, a later reorg must not close the group. */
  #endRebuilding(): void {
    if (!this.isRebuilding) this.#rebuiltUpTo = -1;
  }

  /** Rolls back to a block. Calls of {@link waitFor} for later blocks return false: those blocks may never come. */
  rollBackTo(blockNumber: number): void {
    this.#version += 1;
    this.#blockNumber = Math.min(this.#blockNumber, blockNumber);
    const waiting = this.#waiters;
    this.#waiters = waiting.filter((waiter) => waiter.blockNumber <= blockNumber);
    for (const waiter of waiting) {
      if (waiter.blockNumber > blockNumber) waiter.deferred.resolve(false);
    }
  }

  /** Returns true once the block is indexed; false if `signal` aborts first, or a reorg removes the block. */
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

/** The highest position that an indexed event can have. */
export function indexedUpTo({ progress }: { readonly progress: IndexProgress }): Position {
  return endOfBlock(Math.max(0, progress.blockNumber));
}
