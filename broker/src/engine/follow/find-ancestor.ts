import { findFirstTrue } from "../../lib/first-true.ts";
import type { BlockRef, Ledger } from "../../ports/ledger.ts";
import { reorganisationBlocksMax, type Store } from "../../ports/store.ts";

/** The newest block that the index can go back to and that is on the chain; undefined when none is. Blocks below it are on the chain too. */
export async function findAncestor(ledger: Ledger, store: Store, signal: AbortSignal): Promise<BlockRef | undefined> {
  const kept = await store.listBlocks(ledger.groupId, { atMost: reorganisationBlocksMax + 2 });
  const place = await findFirstTrue(kept.length, async (index) => {
    const block = kept[index];
    return block !== undefined && (await ledger.findBlockHash(block.number, signal)) === block.hash;
  });
  return kept[place];
}
