import { findFirstTrue } from "../../lib/first-true.ts";
import type { BlockRef, Ledger } from "../../ports/ledger.ts";
import { reorganisationBlocksMax, type Store } from "../../ports/store.ts";

export interface AncestorOptions {
  /** A block of the index that is on the chain, as the ledger knows. If given, this reads nothing from the chain. */
  readonly common?: BlockRef | undefined;
  readonly signal: AbortSignal;
}

/**
 * The newest block to which the index can roll back and that is on the chain; undefined if there is none. Blocks below it are on the chain too.
 * @throws Error if the answers contradict each other, for example if they come from two chains: a rollback would deliver again
 * events that are still on the chain.
 */
export async function findAncestor(
  ledger: Ledger,
  store: Store,
  { common, signal }: AncestorOptions,
): Promise<BlockRef | undefined> {
  if (common !== undefined) {
    const [newest] = await store.listBlocks(ledger.groupId, { atMost: 1, below: common.number + 1 });
    return newest;
  }
  const kept = await store.listBlocks(ledger.groupId, { atMost: reorganisationBlocksMax + 2 });
  const isOnChain = async (block: BlockRef | undefined): Promise<boolean> =>
    block !== undefined && (await ledger.findBlockHash(block.number, signal)) === block.hash;
  const place = await findFirstTrue(kept.length, async (index) => isOnChain(kept[index]));
  const above = kept[place - 1];
  if (await isOnChain(above)) throw new Error(`block ${above?.number} is on the chain again`);
  return kept[place];
}
