import type { SubscriptionId } from "../domain/subscription.ts";
import type { Hint } from "../ports/coordinator.ts";

/** Subscriptions with another owner that hints name one by one, at most; for more there is one hint for all. */
const namedMax = 100;

/** Tells that subscriptions have other owners. */
export function hintsOfMoved(ids: readonly SubscriptionId[]): readonly Hint[] {
  return ids.length > namedMax ? [{ kind: "nodes" }] : ids.map((id) => ({ kind: "subscription", id }));
}
