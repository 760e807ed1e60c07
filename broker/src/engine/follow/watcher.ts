import type { EventBatch } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import { endOfBlock, positionZero } from "../../domain/position.ts";
import type { Logger } from "../../lib/logger.ts";
import type { IndexHead, Store } from "../../ports/store.ts";
import type { FeedHub } from "../dispatch/feed-hub.ts";
import type { IndexHealth } from "./index-health.ts";
import type { IndexProgress } from "../index-progress.ts";
import type { Restarter } from "./restarter.ts";

/** How much is read at once of what another node has indexed; a block that alone is more than that is read by each worker itself. */
export interface WatchPage {
  readonly batchesMax: number;
  readonly bytesMax: number;
}

export const watchPageDefault: WatchPage = { batchesMax: 1_024, bytesMax: 4 * 1024 * 1024 };

export interface WatcherParts {
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
 * Feeds this node's workers what another node has indexed, and tells who waits here. The seam is the one of the feed: what is dispatched
 * begins after the progress and ends where the progress is in the same turn, at the end of a block; where one page does not reach
 * the head, the next one goes on from there.
 */
export class Watcher {
  readonly #parts: WatcherParts;
  /** Whether the database lost a part of the index, which was not reported yet. */
  #hasLost = false;

  constructor(parts: WatcherParts) {
    this.#parts = parts;
  }

  /**
   * Answers the newest indexed block, read after this call, when everything up to it is dispatched; undefined for an empty index.
   * Called by one at a time, and not while this node follows. @throws what the store throws; then it is to be called again.
   */
  async catchUp(signal: AbortSignal): Promise<IndexHead | undefined> {
    let head = await this.#findHead();
    while (!signal.aborted && !this.#isAt(head)) head = await this.#approach(head);
    return head;
  }

  #findHead(): Promise<IndexHead | undefined> {
    const { store, groupId } = this.#parts;
    return store.findHead(groupId);
  }

  #isAt(head: IndexHead | undefined): boolean {
    const { progress, restarter } = this.#parts;
    const { blockNumber, generation } = progress;
    return !restarter.isDue && blockNumber === numberOf(head) && generation === generationOf(head);
  }

  /** Goes as far as `head`, or finds that it is to be looked at again. Answers the head of now. */
  async #approach(head: IndexHead | undefined): Promise<IndexHead | undefined> {
    const { progress, hub, groupId } = this.#parts;
    const isFirst = progress.generation === -1;
    if (!isFirst && this.#hasRolledBack(head)) return this.#restart();
    if (!isFirst && head !== undefined && hub.hasReaders(groupId)) return this.#feed(head);
    progress.enterGeneration(generationOf(head));
    this.#skipTo(head);
    return head;
  }

  async #feed(head: IndexHead): Promise<IndexHead | undefined> {
    const { progress, hub, groupId } = this.#parts;
    const fill = await this.#read(head);
    const now = await this.#findHead();
    // What was read under another generation may be of blocks that are no more.
    if (generationOf(now) !== head.generation) return now;
    if (fill.batches === undefined) hub.fallBehind(groupId);
    else hub.offer(groupId, fill.batches);
    progress.advanceTo(fill.upTo);
    return now;
  }

  /** Also true for a database that was restored from a backup, or that lost confirmed writes. */
  #hasRolledBack(head: IndexHead | undefined): boolean {
    const { progress, restarter } = this.#parts;
    if (restarter.isDue || generationOf(head) !== progress.generation) return true;
    this.#hasLost ||= numberOf(head) < progress.blockNumber;
    return this.#hasLost;
  }

  /** What comes after the progress: up to the head, or to the last block of which all is in the page. */
  async #read(head: IndexHead): Promise<Fill> {
    const { store, groupId, progress, page = watchPageDefault } = this.#parts;
    const after = progress.blockNumber < 0 ? positionZero : endOfBlock(progress.blockNumber);
    const range = { after, upTo: endOfBlock(head.blockNumber), topic: undefined, ...page };
    const batches = await store.readBatches(groupId, range);
    const bytes = batches.reduce((sum, { events }) => sum + events.byteLength, 0);
    const last = batches.at(-1);
    const isFull = batches.length >= page.batchesMax || bytes >= page.bytesMax;
    if (!isFull || last === undefined) return { batches, upTo: head.blockNumber };
    const upTo = last.blockNumber - 1;
    if (upTo <= progress.blockNumber) return { batches: undefined, upTo: last.blockNumber };
    return { batches: batches.filter(({ blockNumber }) => blockNumber <= upTo), upTo };
  }

  #skipTo(head: IndexHead | undefined): void {
    const { progress, hub, groupId } = this.#parts;
    hub.fallBehind(groupId);
    progress.advanceTo(numberOf(head));
  }

  async #restart(): Promise<IndexHead | undefined> {
    const { restarter, progress } = this.#parts;
    const { generation } = progress;
    const head = await restarter.restart();
    this.#report(head, { isSame: generationOf(head) === generation });
    return head;
  }

  #report(head: IndexHead | undefined, { isSame }: { readonly isSame: boolean }): void {
    const { logger, health } = this.#parts;
    const place = { blockNumber: numberOf(head), generation: generationOf(head) };
    if (isSame && !this.#hasLost) {
      logger.info("readers restarted after a failed roll-back", place);
      return;
    }
    this.#hasLost = false;
    logger.warn("index rolled back", place);
    health.warn(isSame ? "the database lost a part of the index" : "the chain took back blocks that were final");
  }
}

/** All batches after the progress up to the end of a block; undefined where that is one block that is more than a page. */
interface Fill {
  readonly batches: readonly EventBatch[] | undefined;
  readonly upTo: number;
}

/** An index that holds nothing has not gone back, or to its beginning. */
function generationOf(head: IndexHead | undefined): number {
  return head?.generation ?? 0;
}

function numberOf(head: IndexHead | undefined): number {
  return head?.blockNumber ?? -1;
}
