import { endOfBlock, type Position } from "../../domain/position.ts";
import type { GroupId } from "../../domain/group-id.ts";
import { VanishedEvents } from "../../domain/vanished-events.ts";
import type { SharedMutex } from "../../lib/shared-mutex.ts";
import type { GroupLease } from "../../ports/coordinator.ts";
import type { BlockRef } from "../../ports/ledger.ts";
import type { RollBack, Store } from "../../ports/store.ts";
import type { DeliveryWorker } from "../deliver/delivery-worker.ts";
import type { ProgressWriter } from "../deliver/progress-writer.ts";
import type { Dispatcher } from "../dispatch/dispatcher.ts";
import type { IndexProgress } from "../index-progress.ts";

export interface GoingBackParts {
  readonly groupId: GroupId;
  readonly store: Store;
  readonly dispatcher: Dispatcher;
  readonly progress: IndexProgress;
  readonly progressWriter: ProgressWriter;
  /** Held by whoever makes or continues a subscription of the group. */
  readonly changes: SharedMutex;
  /** Told when workers were cut back and the store may not have been, where somebody may feed them meanwhile: it has them begin anew. */
  readonly onUndecided?: () => void;
}

/**
 * Takes a group's index, and all that was fed from it, back to an earlier block. The order is what keeps a cursor from passing an event
 * that its consumer has not acknowledged: first the cursors are written as they are, then in one turn nothing beyond the block
 * counts as indexed and every worker is cut back to it, and when no older cursor is under way any more, the store goes back.
 */
export class GoingBack {
  readonly #parts: GoingBackParts;
  /** Workers that were beyond, with their cursors then; kept when the store fails, until it succeeds or they begin anew. */
  readonly #cut = new Map<DeliveryWorker, Position>();

  constructor(parts: GoingBackParts) {
    this.#parts = parts;
  }

  /** To be tried again when it fails. The lease is given where nodes share the store. @throws LeaseLostError, and what the store throws. */
  async to(block: BlockRef, lease?: GroupLease): Promise<RollBack> {
    return this.#parts.changes.exclusive(async () => this.#rollBack(block, lease));
  }

  async #rollBack(block: BlockRef, lease: GroupLease | undefined): Promise<RollBack> {
    const { groupId, progress, progressWriter, dispatcher } = this.#parts;
    await progressWriter.flush();
    this.#cutBack(block);
    const done = await this.#rollBackStore(block, lease);
    progress.enterGeneration(progress.generation + 1);
    dispatcher.fallBehind(groupId);
    const vanished = new VanishedEvents(done.vanished);
    for (const [worker, cursor] of this.#cut) worker.uncount(vanished.countUpTo(worker.filter, cursor));
    this.#cut.clear();
    return done;
  }

  #cutBack(block: BlockRef): void {
    const { groupId, progress, dispatcher } = this.#parts;
    progress.rollBackTo(block.number);
    const workers = new Set(dispatcher.workersOf(groupId));
    // One that has ended since an attempt that failed no longer knows how far its subscription is.
    for (const worker of this.#cut.keys()) if (!workers.has(worker)) this.#cut.delete(worker);
    for (const worker of workers) {
      const cursor = worker.cutBack(endOfBlock(block.number));
      if (cursor !== undefined && !this.#cut.has(worker)) this.#cut.set(worker, cursor);
    }
    for (const reader of dispatcher.readersOf(groupId)) reader.cutBack(endOfBlock(block.number));
  }

  async #rollBackStore(block: BlockRef, lease: GroupLease | undefined): Promise<RollBack> {
    const { store, groupId, progressWriter } = this.#parts;
    try {
      await progressWriter.flush();
      return await store.rollBack(groupId, block, lease);
    } catch (error) {
      this.#onUndecided();
      throw error;
    }
  }

  #onUndecided(): void {
    const { onUndecided } = this.#parts;
    if (onUndecided === undefined) return;
    this.#cut.clear();
    onUndecided();
  }
}
