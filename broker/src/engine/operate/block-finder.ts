import { BrokerError, quote } from "@stele/wire";
import { beforeBlock, blockNumberMax, blockOf, endOfBlock } from "../../domain/position.ts";
import { type EventBatch, eventBytesOf, lastPositionOf } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import { groupBy } from "../../lib/group-by.ts";
import type { Pauses } from "../../lib/time-slices.ts";
import type { Store } from "../../ports/store.ts";
import type { EventIds } from "../event-ids.ts";
import type { Group, Groups } from "../group.ts";
import type { BlockView, Page, PageCall } from "./calls.ts";

/** Maximum number of batches of one read. A block with more shows only its first batches. */
const batchesReadMax = 500;
/** Maximum number of bytes of events of one read. */
const batchBytesReadMax = 2 ** 20;

/** Blocks of the first read: few, because each may be full. */
const blocksReadFirst = 64;
/** Maximum number of blocks of one read. After an empty read, the next read covers four times as many, up to this number. */
const blocksReadMax = 2 ** 20;

/** Maximum number of reads of one call. The next page continues where they ended. */
const blockReadsMax = 64;

export interface BlockFinderOptions {
  /** May leave out the content of events: a list needs none. */
  readonly storeWithoutDropped: Pick<Store, "readBatches">;
  readonly groups: Groups;
  readonly eventIds: EventIds;
}

/** A range of blocks, with its ends. */
interface BlockRange {
  readonly first: number;
  readonly last: number;
}

/** Finds the blocks that have events. */
export class BlockFinder {
  readonly #options: BlockFinderOptions;

  constructor(options: BlockFinderOptions) {
    this.#options = options;
  }

  /** Lists the newest first; `next` is the lowest block that the page covers. @throws BrokerError 200001 for the cursor; 100306, 200211 for the group. */
  async list(
    groupId: string | undefined,
    { after, limit, slices }: PageCall & { readonly slices: Pauses },
  ): Promise<Page<BlockView>> {
    const group = this.#options.groups.getAny(groupId);
    const items: BlockView[] = [];
    let last = after === undefined ? await headOf(group) : toBlock(after) - 1;
    let width = blocksReadFirst;
    for (let reads = 0; last >= 0 && reads < blockReadsMax && items.length < limit; reads += 1) {
      const range = { first: Math.max(0, last - width + 1), last };
      const { batches, isCut } = await this.#read(group.id, range);
      if (isCut && range.first < last) {
        width = Math.max(1, Math.floor(width / 8));
        continue;
      }
      const hasMore = isCut && (await this.#hasMore(group.id, batches));
      for (const view of this.#toBlocks(batches, hasMore)) {
        if (items.length === limit) return { items, next: String(items.at(-1)?.block) };
        items.push(view);
      }
      last = range.first - 1;
      width = batches.length === 0 ? Math.min(width * 4, blocksReadMax) : blocksReadFirst;
      await slices.pause();
    }
    return { items, next: last < 0 ? undefined : String(last + 1) };
  }

  async #read(groupId: GroupId, { first, last }: BlockRange) {
    const bounds = { batchesMax: batchesReadMax, bytesMax: batchBytesReadMax };
    const range = { after: beforeBlock(first), upTo: endOfBlock(last), topic: undefined };
    const batches = await this.#options.storeWithoutDropped.readBatches(groupId, { ...range, ...bounds });
    const bytes = batches.reduce((sum, batch) => sum + eventBytesOf(batch), 0);
    return { batches, isCut: batches.length >= batchesReadMax || bytes >= batchBytesReadMax };
  }

  /** After a read that reached a limit: whether its block has further batches. */
  async #hasMore(groupId: GroupId, batches: readonly EventBatch[]): Promise<boolean> {
    const last = batches.at(-1);
    if (last === undefined) return false;
    const range = { after: lastPositionOf(last), upTo: endOfBlock(last.blockNumber), topic: undefined };
    const rest = await this.#options.storeWithoutDropped.readBatches(groupId, { ...range, batchesMax: 1, bytesMax: 1 });
    return rest.length > 0;
  }

  /** A read that was cut covers one block only, so `isCut` is true for no other block. */
  #toBlocks(batches: readonly EventBatch[], isCut: boolean): readonly BlockView[] {
    const { eventIds } = this.#options;
    return [...groupBy(batches, ({ firstPosition }) => blockOf(firstPosition))]
      .map(([block, own]) => ({
        block,
        isCut,
        batches: own.map((batch) => ({
          batch,
          firstEventId: eventIds.of({ ...batch, sequence: batch.firstSequence }),
        })),
      }))
      .toReversed();
  }
}

async function headOf(group: Group): Promise<number> {
  return (await group.findHead())?.blockNumber ?? -1;
}

function toBlock(cursor: string): number {
  if (/^\d{1,10}$/.test(cursor) && Number(cursor) <= blockNumberMax) return Number(cursor);
  throw new BrokerError("parameterInvalid", { details: `"cursor" is not from this list: ${quote(cursor)}` });
}
