import { intersectFilters } from "../../domain/filter-intersection.ts";
import type { CallbackSubscription } from "../../domain/subscription.ts";
import type { SubscriptionMove } from "../../ports/subscription-search.ts";
import type { PendingCounts } from "../query/pending-counts.ts";

/** Events that an order concerns. */
export interface Concerned {
  /** Matching events that are skipped, delivered again, or wait; of an order for dead letters, those that it removed. */
  readonly events: number;
  /** Events that wait and that the new topic does not match, so that they are not delivered; undefined where the order names no topic. */
  readonly unmatched?: number | undefined;
}

/** Notes what has to be counted of one, and says after the count how many events a move concerns. */
export function addConcerned(
  counts: PendingCounts,
  current: CallbackSubscription,
  move: SubscriptionMove,
): () => Concerned {
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
