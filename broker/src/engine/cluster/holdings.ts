import type { GroupId } from "../../domain/group-id.ts";
import type { SubscriptionId } from "../../domain/subscription.ts";
import type { Holding, SubscriptionKey } from "../../ports/coordinator.ts";

/** Subscriptions of one group that are handled together. */
export interface HoldingsPage<T> {
  readonly groupId: GroupId;
  readonly items: readonly T[];
}

/** A worker, with the epoch under which it delivers. */
export interface RunningWorker extends SubscriptionKey {
  readonly groupId: GroupId;
}

export interface HoldingsDifference {
  /** Holdings that another node asks for. */
  readonly wanted: readonly HoldingsPage<Holding>[];
  /** Subscriptions that are owned without a worker, delivered without being owned, or delivered under another epoch. */
  readonly doubtful: readonly HoldingsPage<SubscriptionId>[];
}

/** Maximum number of subscriptions in one page. */
export const holdingsPageMax = 500;

/** Compares the subscriptions that a node owns with those that it delivers. */
export function compareHoldings(holdings: readonly Holding[], running: Iterable<RunningWorker>): HoldingsDifference {
  const workers = new Map([...running].map((worker) => [worker.id, worker]));
  const wanted = new Map<GroupId, Holding[]>();
  const doubtful = new Map<GroupId, SubscriptionId[]>();
  for (const holding of holdings) {
    const isDelivered = workers.get(holding.id)?.epoch === holding.epoch;
    workers.delete(holding.id);
    if (holding.wantedBy !== undefined) put(wanted, holding.groupId, holding);
    else if (!isDelivered) put(doubtful, holding.groupId, holding.id);
  }
  for (const { id, groupId } of workers.values()) put(doubtful, groupId, id);
  return { wanted: toPages(wanted), doubtful: toPages(doubtful) };
}

function put<T>(byGroup: Map<GroupId, T[]>, groupId: GroupId, item: T): void {
  const known = byGroup.get(groupId);
  if (known === undefined) byGroup.set(groupId, [item]);
  else known.push(item);
}

function toPages<T>(byGroup: ReadonlyMap<GroupId, readonly T[]>): readonly HoldingsPage<T>[] {
  const pages: HoldingsPage<T>[] = [];
  for (const [groupId, items] of byGroup) {
    for (let start = 0; start < items.length; start += holdingsPageMax)
      pages.push({ groupId, items: items.slice(start, start + holdingsPageMax) });
  }
  return pages;
}
