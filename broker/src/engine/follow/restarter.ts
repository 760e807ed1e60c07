import type { GroupId } from "../../domain/group-id.ts";
import { endOfBlock } from "../../domain/position.ts";
import type { ReadWriteLock } from "../../lib/read-write-lock.ts";
import type { GroupLease } from "../../ports/coordinator.ts";
import type { BlockRef } from "../../ports/ledger.ts";
import { type IndexHead, reorganisationBlocksMax, type RollBack, type Store } from "../../ports/store.ts";
import type { ProgressWriter } from "../deliver/progress-writer.ts";
import type { Readers } from "../dispatch/readers.ts";
import type { IndexProgress } from "../index-progress.ts";
import type { RollBackHistory } from "../rollback-history.ts";
import { findKept } from "./find-kept.ts";

export interface RestarterOptions {
  readonly groupId: GroupId;
  readonly store: Store;
  readonly progress: IndexProgress;
  /** Writes the cursors of the readers. */
  readonly progressWriter: Pick<ProgressWriter, "flush">;
  /** All readers of the group's index at this node. */
  readonly readers: readonly Readers[];
  /** The lock against rollbacks: calls that create or continue a subscription of the group hold it for reading, a rollback holds it for writing. */
  readonly changes: ReadWriteLock;
  readonly rollBacks: Pick<RollBackHistory, "note">;
}

export interface Restart {
  readonly head: IndexHead | undefined;
  /**
   * No rollback has changed the index up to this block since this node saw the block: see {@link findKept}. Beyond the head if the database lost more blocks.
   */
  readonly kept: number;
}

/**
 * Performs every rollback: stops all readers of a group, writes their progress, rolls back the store, and restarts the readers from their rows. Attempts
 * in progress are aborted. A callback subscription repeats the events after its cursor that its receiver has accepted: at most one with the default delivery.
 */
export class Restarter {
  readonly #options: RestarterOptions;
  #isDue = false;
  /** The number of rollbacks that the index has once the owed ones are done. */
  #rollBacksDue = 0;
  /** The newest block up to which the readers have read, if a rollback has failed since they did. */
  #reached: number | undefined;

  constructor(options: RestarterOptions) {
    this.#options = options;
  }

  /** Whether the readers must restart: an earlier call failed and left them stopped, or the progress is outdated. */
  get isDue(): boolean {
    return this.#isDue || this.#options.progress.isOutdated;
  }

  /**
   * Whether the database has lost the index's newest blocks. Then cursors may be beyond the index. If the chain has replaced these blocks, other events will
   * take the positions there. So the node that follows next must roll back, if only to the newest block that is left: that moves all cursors back to it. If the
   * database has lost rollbacks as well, one is not enough: the other nodes notice only a number of rollbacks that they have not seen before.
   */
  get owesRollBack(): boolean {
    return this.#options.progress.generation < this.#rollBacksDue;
  }

  /**
   * Rolls the index back to a block. Pass the lease if nodes share the store. After a failure the store may have rolled back or not: call this again,
   * or {@link restart}. @throws LeaseLostError, and what the store throws.
   */
  async rollBack(to: BlockRef, lease?: GroupLease): Promise<RollBack> {
    const { store, groupId, progress, rollBacks } = this.#options;
    const fromBlock = progress.blockNumber;
    this.#reached ??= fromBlock;
    // Ends the waits for later blocks: their callers could not learn whether the chain commits the same events again.
    progress.rollBackTo(to.number);
    const { done } = await this.#run(() => store.rollBack(groupId, to, lease), to);
    this.#reached = undefined;
    rollBacks.note({ fromBlock, toBlock: to.number, events: done.eventCount });
    return done;
  }

  /** Restarts the readers from the index in the store, which another node may have rolled back. @throws what the store throws. */
  async restart(): Promise<Restart> {
    const { progress, rollBacks } = this.#options;
    const { blockNumber: fromBlock, generation } = progress;
    const { head, kept } = await this.#run(async () => undefined);
    const isSame = progress.generation === generation;
    const hasLost = isSame ? progress.blockNumber < (this.#reached ?? fromBlock) : progress.generation < generation;
    // An empty index is rebuilt, and moves no cursor.
    if (head !== undefined && hasLost) this.#rollBacksDue = Math.max(this.#rollBacksDue, generation + 1);
    this.#reached = undefined;
    // Before the first read no generation is known.
    if (generation !== -1 && !isSame) rollBacks.note({ fromBlock, toBlock: progress.blockNumber, events: undefined });
    return { head, kept };
  }

  /** `to` is the block to which `change` rolls back. */
  #run<T>(change: () => Promise<T>, to?: BlockRef): Promise<Restart & { readonly done: T }> {
    const { changes, readers, groupId, progressWriter, progress, store } = this.#options;
    this.#isDue = true;
    const { blockNumber: before } = progress;
    return changes.exclusive(async () => {
      await Promise.all(readers.map((one) => one.stop(groupId)));
      await progressWriter.flush();
      const done = await change();
      // Read these blocks before the head. Then a rollback between the two reads shows in the kept block, or in the next generation.
      if (progress.isOutdated)
        progress.seeAnew((await store.listBlocks(groupId, { atMost: reorganisationBlocksMax + 2 })).toReversed());
      const head = await store.findHead(groupId);
      const kept = to?.number ?? (await findKept(store, groupId, { head, progress }));
      progress.rollBackTo(-1);
      progress.enterGeneration(head?.generation ?? 0);
      progress.advanceTo(head?.blockNumber ?? -1);
      progress.forgetSeen(kept);
      // Wait for `before` after a rollback too: it restores none of the missing blocks. Once the index has every final block, the rebuild ends in any case.
      if (progress.blockNumber < Math.max(kept, before - reorganisationBlocksMax)) progress.rebuildTo(before);
      this.#isDue = false;
      for (const one of readers) one.restart(groupId, endOfBlock(Math.max(0, kept)));
      return { done, head, kept };
    });
  }
}
