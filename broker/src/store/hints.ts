import type { NodeId } from "../domain/node.ts";
import type { SubscriptionId } from "../domain/subscription.ts";
import type { Hint } from "../ports/coordinator.ts";

/** Maximum number of moved subscriptions that get a hint each; for more, or if one has no owner, one hint covers all. */
const namedMax = 100;

/** A subscription whose owner changed. If it has no owner, it waits for assignment. */
export interface Moved {
  readonly id: SubscriptionId;
  readonly owner: NodeId | undefined;
}

/** Hints that announce new owners of subscriptions. */
export function hintsOfMoved(moved: readonly Moved[]): readonly Hint[] {
  const isForAll = moved.length > namedMax || moved.some(({ owner }) => owner === undefined);
  return isForAll ? [{ kind: "nodes" }] : moved.map(({ id }) => ({ kind: "subscription", id }));
}

/** A subscription without a live owner that was assigned to a node. */
export interface Reassigned {
  readonly from: NodeId | undefined;
  readonly to: NodeId;
}

/** Hints that count the reassigned subscriptions, one for each pair of nodes. */
export function hintsOfTaken(reassigned: readonly Reassigned[]): readonly Hint[] {
  const counts = new Map<string, Reassigned & { readonly subscriptions: number }>();
  for (const { from, to } of reassigned) {
    const key = `${from} ${to}`;
    counts.set(key, { from, to, subscriptions: (counts.get(key)?.subscriptions ?? 0) + 1 });
  }
  return [...counts.values()].map(({ from, to, subscriptions }) => {
    return { kind: "taken", nodeId: to, from, groupId: undefined, subscriptions };
  });
}
