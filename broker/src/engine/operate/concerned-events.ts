import { intersectFilters } from "../../domain/filter-intersection.ts";
import type { CallbackSubscription } from "../../domain/subscription.ts";
import type { SubscriptionMove } from "../../ports/subscription-search.ts";
import type { PendingCounts } from "../query/pending-counts.ts";

/** Events that an order concerns. */
export interface ConcernedEvents {
  /** Number of matching events that an order skips, repeats or finds waiting; for dead letters, how many of them the order removes. */
  readonly events: number;
  /** Number of waiting events that are never delivered because the new topic does not match them; undefined if the order changes no topic. */
  readonly unmatched?: number | undefined;
}

/** Adds to `counts` the filters and cursors that the result of a move needs. Once `counts` has been read, the returned function gives the result. */
export function addConcernedEvents(
  counts: PendingCounts,
  current: CallbackSubscription,
  move: SubscriptionMove,
): () => ConcernedEvents {
  const next = { ...current, ...move };
  counts.add(next);
  if (move.cursor !== undefined) {
    counts.add(current);
    return () => ({ events: Math.abs(counts.get(current) - counts.get(next)) });
  }
  if (move.filter === undefined) return () => ({ events: counts.get(next) });
  counts.add(current);
  const filter = intersectFilters(current.filter, move.filter);
  const kept = filter && { ...current, filter };
  if (kept !== undefined) counts.add(kept);
  return () => ({ events: counts.get(next), unmatched: counts.get(current) - (kept ? counts.get(kept) : 0) });
}
