import type { NodeId } from "../domain/node.ts";
import type { SubscriptionId } from "../domain/subscription.ts";
import type { Hint } from "../ports/coordinator.ts";

/** Subscriptions with another owner that hints name one by one, at most; for more there is one hint for all. */
const namedMax = 100;

/** A subscription that changed hands; one without an owner is to be given out. */
export interface Moved {
  readonly id: SubscriptionId;
  readonly owner: NodeId | undefined;
}

/** Tells that subscriptions have other owners. */
export function hintsOfMoved(moved: readonly Moved[]): readonly Hint[] {
  const isForAll = moved.length > namedMax || moved.some(({ owner }) => owner === undefined);
  return isForAll ? [{ kind: "nodes" }] : moved.map(({ id }) => ({ kind: "subscription", id }));
}
