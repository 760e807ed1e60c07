import { findFirstTrue } from "../../lib/first-true.ts";
import type { BlockRef, Ledger } from "../../ports/ledger.ts";
import { reorganisationBlocksMax, type Store } from "../../ports/store.ts";

export interface AncestorOptions {
  /** A block of the index that the ledger knows to be on the chain. With it, the chain is not asked. */
  readonly common?: BlockRef | undefined;
  readonly signal: AbortSignal;
}

/** The newest block that is on the chain and that the index can roll back to; undefined if there is none. Blocks below it are on the chain too. */
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
