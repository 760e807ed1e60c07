import type { GroupId } from "../../domain/group-id.ts";
import { chunksOf } from "../../lib/chunks.ts";
import { groupBy } from "../../lib/group-by.ts";
import type { OwnedSubscription, SubscriptionKey } from "../../ports/coordinator.ts";

/** Subscriptions of one group that are handled together. */
export interface GroupPage {
  readonly groupId: GroupId;
  readonly items: readonly SubscriptionKey[];
}

/** A worker, with the epoch under which it delivers. */
export interface RunningWorker extends SubscriptionKey {
  readonly groupId: GroupId;
}

export interface OwnedDifference {
  readonly wanted: readonly GroupPage[];
  /** Subscriptions that are owned without a worker, delivered without being owned, or delivered under another epoch. */
  readonly doubtful: readonly GroupPage[];
}

/** Maximum number of subscriptions in one page. */
export const ownedPageMax = 500;

/** Compares the subscriptions that a node owns with those that it delivers. */
export function compareOwned(owned: readonly OwnedSubscription[], running: Iterable<RunningWorker>): OwnedDifference {
  const workers = new Map([...running].map((worker) => [worker.id, worker]));
  const doubtful: RunningWorker[] = [];
  for (const one of owned) {
    const isDelivered = workers.get(one.id)?.epoch === one.epoch;
    workers.delete(one.id);
    if (one.wantedBy === undefined && !isDelivered) doubtful.push(one);
  }
  const wanted = owned.filter(({ wantedBy }) => wantedBy !== undefined);
  return { wanted: toPages(wanted), doubtful: toPages([...doubtful, ...workers.values()]) };
}

function toPages(all: readonly RunningWorker[]): readonly GroupPage[] {
  return [...groupBy(all, ({ groupId }) => groupId)].flatMap(([groupId, own]) =>
    [...chunksOf(own, ownedPageMax)].map((items) => ({ groupId, items })),
  );
}
