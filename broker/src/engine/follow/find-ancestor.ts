import type { BlockRef, Ledger } from "../../ports/ledger.ts";
import { reorganisationBlocksMax, type Store } from "../../ports/store.ts";

/**
 * The newest block that the index can go back to and that is on the chain; undefined when none is. Blocks below one on the chain are
 * on it too, so that a shallow reorganisation costs a few questions, and a deep one a few more.
 */
export async function findAncestor(ledger: Ledger, store: Store, signal: AbortSignal): Promise<BlockRef | undefined> {
  const kept = await store.listBlocks(ledger.groupId, { atMost: reorganisationBlocksMax + 2 });
  const isOnChain = async (block: BlockRef): Promise<boolean> =>
    (await ledger.findBlockHash(block.number, signal)) === block.hash;
  let known = kept.length;
  let below = 0;
  for (let step = 1; known === kept.length && below < known; step *= 2) {
    const place = Math.min(below + step, kept.length) - 1;
    const block = kept[place];
    if (block !== undefined && (await isOnChain(block))) known = place;
    else below = place + 1;
  }
  while (below < known) {
    const middle = (below + known) >>> 1;
    const block = kept[middle];
    if (block !== undefined && (await isOnChain(block))) known = middle;
    else below = middle + 1;
  }
  return kept[known];
}
