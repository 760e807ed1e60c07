import { findFirstTrue } from "../../lib/first-true.ts";
import type { BlockRef, Ledger } from "../../ports/ledger.ts";
import { reorganisationBlocksMax, type Store } from "../../ports/store.ts";

export interface AncestorOptions {
  /** A block of the index that is on the chain, as the ledger knows. If given, this reads nothing from the chain. */
  readonly common?: BlockRef | undefined;
  readonly signal: AbortSignal;
}

/** The newest block to which the index can roll back and that is on the chain; undefined if there is none. Blocks below it are on the chain too. */
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
  const place = await findFirstTrue(kept.length, async (index) => {
    const block = kept[index];
    return block !== undefined && (await ledger.findBlockHash(block.number, signal)) === block.hash;
  });
  return kept[place];
}
