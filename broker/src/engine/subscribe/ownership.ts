import type { NodeId } from "../../domain/node.ts";
import type { CallbackSubscription, Subscription, SubscriptionId } from "../../domain/subscription.ts";
import type { AcceptedAhead } from "../deliver/accepted-ahead.ts";
import type { DeliveryWorkers } from "../deliver/delivery-workers.ts";

/** Which node may change a subscription and deliver it. */
export interface Ownership {
  /** Whether several nodes make and remove subscriptions. */
  readonly isShared: boolean;
  /** The node that delivers subscriptions made here; undefined for a single node. @throws BrokerError 200207. */
  owner(): Promise<NodeId | undefined>;
  /**
   * Claims a subscription for this node, and waits until its owner hands it over. Does nothing if the subscription does not exist.
   * @throws BrokerError 200207; 200300 if this node does not get it in time.
   */
  claim(id: SubscriptionId): Promise<void>;
  /** Whether this node owns a row that was just read. */
  isOwn(subscription: Subscription): boolean;
  /**
   * Starts delivery of a subscription of this node. The caller must have kept the index from rolling back since it created or read the row. If
   * the former worker ended in the meantime, `ahead` are the events that it delivered beyond the cursor.
   */
  begin(subscription: CallbackSubscription, ahead?: AcceptedAhead): void;
}

/** The ownership of a single node. */
export function createSoleOwnership(workers: DeliveryWorkers): Ownership {
  return {
    isShared: false,
    owner: async () => undefined,
    claim: async () => {},
    isOwn: () => true,
    begin: (subscription, ahead) => workers.add(subscription, ahead),
  };
}
