import { type EventBatch, isDropped } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import { endOfBlock, positionZero } from "../../domain/position.ts";
import type { Logger } from "../../lib/logger.ts";
import { type IndexHead, reorganisationBlocksMax, type Store } from "../../ports/store.ts";
import type { FeedHub } from "../dispatch/feed-hub.ts";
import type { IndexHealth } from "./index-health.ts";
import type { IndexProgress } from "../index-progress.ts";
import type { Restarter } from "./restarter.ts";

/** Limits of one read of the index that another node writes. If a block does not fit, each reader reads it from the store. */
export interface WatchPage {
  readonly batchesMax: number;
  readonly bytesMax: number;
}

export const watchPageDefault: WatchPage = { batchesMax: 1_024, bytesMax: 4 * 1024 * 1024 };

export interface WatcherOptions {
  readonly groupId: GroupId;
  readonly store: Store;
  readonly progress: IndexProgress;
  readonly hub: FeedHub;
  readonly restarter: Restarter;
  readonly health: IndexHealth;
  readonly logger: Logger;
  readonly page?: WatchPage;
}

/**
 * Offers this node's readers the batches that another node indexes, and advances the progress. Each page begins after the progress and ends at
 * the end of a block, and the progress advances to this block in the same turn: so feeds get no gap and no repeat. If a page does not reach the head, the next
 * one continues.
 */
export class Watcher {
  readonly #options: WatcherOptions;

  constructor(options: WatcherOptions) {
    this.#options = options;
  }

  /**
   * Brings the progress to the newest indexed block, and returns that block; undefined for an empty index. If `signal` aborts, returns early. Readers get the
   * batches, or read the store themselves. Make one call at a time, and none while this node follows. @throws what the store throws; call it again then.
   */
  async catchUp(signal: AbortSignal): Promise<IndexHead | undefined> {
    let head = await this.#findHead();
    while (!signal.aborted && !this.#isAt(head)) head = await this.#approach(head);
    if (head !== undefined && this.#isAt(head))
      this.#options.progress.saw({ number: head.blockNumber, hash: head.hash });
    return head;
  }

  /** Whether the stored index lacks a part that this node has seen: a node that started has emptied it, or the database lost it. */
  async isShortened(): Promise<boolean> {
    const { blockNumber } = this.#options.progress;
    return numberOf(await this.#findHead()) < blockNumber;
  }

  #findHead(): Promise<IndexHead | undefined> {
    const { store, groupId } = this.#options;
    return store.findHead(groupId);
  }

  #isAt(head: IndexHead | undefined): boolean {
    const { progress, restarter } = this.#options;
    const { blockNumber, generation } = progress;
    return !restarter.isDue && blockNumber === numberOf(head) && generation === generationOf(head);
  }

  /** Catches up towards `head`. Returns the newest head that it knows. */
  async #approach(head: IndexHead | undefined): Promise<IndexHead | undefined> {
    const { progress, hub, groupId } = this.#options;
    const isFirst = progress.generation === -1;
    // See the blocks before a restart, which would note only the head. This node may have seen none yet, if other nodes emptied the index before it started.
    if (head !== undefined && progress.seen.length === 0 && !(await this.#seeBlocks(head))) return this.#findHead();
    if (!isFirst && this.#hasRolledBack(head)) return this.#restart();
    if (!isFirst && head !== undefined && hub.hasReaders(groupId)) return this.#feed(head);
    progress.enterGeneration(generationOf(head));
    this.#skipTo(head);
    return head;
  }

  /**
   * Notes every block to which the index can roll back, before the first reader begins: later they show how far a rollback went. Returns false if the index has
   * rolled back meanwhile.
   */
  async #seeBlocks({ blockNumber, generation }: IndexHead): Promise<boolean> {
    const { store, groupId, progress } = this.#options;
    const blocks = await store.listBlocks(groupId, { atMost: reorganisationBlocksMax + 2, below: blockNumber + 1 });
    if (generationOf(await this.#findHead()) !== generation) return false;
    for (const block of blocks.toReversed()) progress.saw(block);
    return true;
  }

  async #feed(head: IndexHead): Promise<IndexHead | undefined> {
    const { progress, hub, groupId } = this.#options;
    const fill = await this.#read(head);
    const now = await this.#findHead();
    // Batches read under another generation may belong to blocks that are gone.
    if (generationOf(now) !== head.generation) return now;
    if (fill.batches === undefined) hub.fallBehind(groupId);
    else hub.offer(groupId, fill.batches);
    progress.advanceTo(fill.upTo);
    return now;
  }

  /**
   * Whether the readers must restart: the stored index has rolled back, the database was restored from a backup or lost confirmed writes, the chain lost the
   * same blocks, or an earlier restart failed.
   */
  #hasRolledBack(head: IndexHead | undefined): boolean {
    const { progress, restarter } = this.#options;
    return restarter.isDue || generationOf(head) !== progress.generation || numberOf(head) < progress.blockNumber;
  }

  /** Reads the batches after the progress, up to the head or to the last block that fits into the page. */
  async #read(head: IndexHead): Promise<Fill> {
    const { store, groupId, progress, page = watchPageDefault } = this.#options;
    const after = progress.blockNumber < 0 ? positionZero : endOfBlock(progress.blockNumber);
    const range = { after, upTo: endOfBlock(head.blockNumber), topic: undefined, ...page };
    const batches = await store.readBatches(groupId, range);
    // Only the chain has events that the store dropped. Each reader reads them itself, so that the other readers do not wait.
    if (batches.some(isDropped)) return { batches: undefined, upTo: head.blockNumber };
    const bytes = batches.reduce((sum, { events }) => sum + events.byteLength, 0);
    const last = batches.at(-1);
    const isFull = batches.length >= page.batchesMax || bytes >= page.bytesMax;
    if (!isFull || last === undefined) return { batches, upTo: head.blockNumber };
    const upTo = last.blockNumber - 1;
    if (upTo <= progress.blockNumber) return { batches: undefined, upTo: last.blockNumber };
    return { batches: batches.filter(({ blockNumber }) => blockNumber <= upTo), upTo };
  }

  #skipTo(head: IndexHead | undefined): void {
    const { progress, hub, groupId } = this.#options;
    hub.fallBehind(groupId);
    progress.advanceTo(numberOf(head));
  }

  async #restart(): Promise<IndexHead | undefined> {
    const { restarter, progress, logger, health } = this.#options;
    const { generation, blockNumber } = progress;
    const { head, kept } = await restarter.restart();
    const place = { blockNumber: numberOf(head), generation: generationOf(head) };
    const isSame = place.generation === generation;
    // Compare both. The head alone may hide a loss: after a failed restart, the index may have grown again. The kept block alone may be beyond the head.
    if (isSame && Math.min(kept, place.blockNumber) >= blockNumber) {
      logger.info("readers restarted", place);
      return head;
    }
    logger.warn("index rolled back", place);
    // The node that rolled back knows why. Its log says so.
    health.warn(
      isSame
        ? "the database lost a part of the index"
        : "the chain took back blocks that were final, or another node read blocks again because the index lacked them, lacked their events or was damaged",
    );
    return head;
  }
}

/** All batches after the progress up to the block `upTo`; undefined if readers must read them: a block exceeds a page, or the store dropped events. */
interface Fill {
  readonly batches: readonly EventBatch[] | undefined;
  readonly upTo: number;
}

function generationOf(head: IndexHead | undefined): number {
  return head?.generation ?? 0;
}

function numberOf(head: IndexHead | undefined): number {
  return head?.blockNumber ?? -1;
}
