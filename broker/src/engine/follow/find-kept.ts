import type { GroupId } from "../../domain/group-id.ts";
import { findFirstTrue } from "../../lib/first-true.ts";
import { reorganisationBlocksMax, type IndexHead, type Store } from "../../ports/store.ts";
import type { IndexProgress } from "../index-progress.ts";

/**
 * Finds the newest block that this node has seen and that the index still has, and returns its number. No rollback since then has changed the index up to this
 * block. If there is none, returns the oldest block that the node remembers, which no rollback can remove. A single node remembers no blocks: returns the head.
 */
export async function findKept(
  store: Pick<Store, "listBlocks">,
  groupId: GroupId,
  { head, progress }: { readonly head: IndexHead | undefined; readonly progress: Pick<IndexProgress, "seen"> },
): Promise<number> {
  const newest = head?.blockNumber ?? -1;
  const [oldest] = progress.seen;
  // The store lists no older blocks.
  const seen = progress.seen.filter(({ number }) => number >= newest - reorganisationBlocksMax).toReversed();
  const place = await findFirstTrue(seen.length, async (index) => {
    const block = seen[index];
    if (block === undefined) return false;
    const [kept] = await store.listBlocks(groupId, { atMost: 1, below: block.number + 1 });
    return kept?.hash === block.hash;
  });
  return seen[place]?.number ?? oldest?.number ?? newest;
}
