import type { GroupId } from "../../domain/group-id.ts";
import type { SubscriptionId } from "../../domain/subscription.ts";
import type { OwnedSubscription, SubscriptionKey } from "../../ports/coordinator.ts";

/** Subscriptions of one group that are handled together. */
export interface GroupPage<T> {
  readonly groupId: GroupId;
  readonly items: readonly T[];
}

/** A worker, with the epoch under which it delivers. */
export interface RunningWorker extends SubscriptionKey {
  readonly groupId: GroupId;
}

export interface OwnedDifference {
  readonly wanted: readonly GroupPage<OwnedSubscription>[];
  /** Subscriptions that are owned without a worker, delivered without being owned, or delivered under another epoch. */
  readonly doubtful: readonly GroupPage<SubscriptionId>[];
}

/** Maximum number of subscriptions in one page. */
export const ownedPageMax = 500;

/** Compares the subscriptions that a node owns with those that it delivers. */
export function compareOwned(owned: readonly OwnedSubscription[], running: Iterable<RunningWorker>): OwnedDifference {
  const workers = new Map([...running].map((worker) => [worker.id, worker]));
  const wanted = new Map<GroupId, OwnedSubscription[]>();
  const doubtful = new Map<GroupId, SubscriptionId[]>();
  for (const one of owned) {
    const isDelivered = workers.get(one.id)?.epoch === one.epoch;
    workers.delete(one.id);
    if (one.wantedBy !== undefined) put(wanted, one.groupId, one);
    else if (!isDelivered) put(doubtful, one.groupId, one.id);
  }
  for (const { id, groupId } of workers.values()) put(doubtful, groupId, id);
  return { wanted: toPages(wanted), doubtful: toPages(doubtful) };
}

function put<T>(byGroup: Map<GroupId, T[]>, groupId: GroupId, item: T): void {
  const known = byGroup.get(groupId);
  if (known === undefined) byGroup.set(groupId, [item]);
  else known.push(item);
}

function toPages<T>(byGroup: ReadonlyMap<GroupId, readonly T[]>): readonly GroupPage<T>[] {
  const pages: GroupPage<T>[] = [];
  for (const [groupId, items] of byGroup) {
    for (let start = 0; start < items.length; start += ownedPageMax)
      pages.push({ groupId, items: items.slice(start, start + ownedPageMax) });
  }
  return pages;
}
