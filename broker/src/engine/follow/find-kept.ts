import type { GroupId } from "../../domain/group-id.ts";
import { findFirstTrue } from "../../lib/first-true.ts";
import { reorganisationBlocksMax, type IndexHead, type Store } from "../../ports/store.ts";
import type { IndexProgress } from "../index-progress.ts";

/**
 * The number of a block up to which no rollback has changed the index since this node saw the block. It is the newest block that the node has seen and that
 * the index still has, else the oldest block that the node remembers, which no rollback can remove. A single node remembers no blocks: then it is the head.
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
