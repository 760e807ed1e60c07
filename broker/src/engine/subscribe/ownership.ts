import type { NodeId } from "../../domain/node.ts";
import type { CallbackSubscription, Subscription, SubscriptionId } from "../../domain/subscription.ts";
import type { AcceptedAhead } from "../deliver/accepted-ahead.ts";
import type { DeliveryWorkers } from "../deliver/delivery-workers.ts";

/** Which node may change a subscription and deliver it. */
export interface Ownership {
  /** Whether other nodes make and remove subscriptions too. */
  readonly isShared: boolean;
  /** The node that delivers what is made here; undefined where one process alone has the store. @throws BrokerError 200207. */
  owner(): Promise<NodeId | undefined>;
  /**
   * Makes a subscription this node's, and waits for the node that has it; does nothing when there is none.
   * @throws BrokerError 200207, 200300 when it is not handed over in time.
   */
  claim(id: SubscriptionId): Promise<void>;
  /** Whether a row that was just read is this node's. */
  isOwn(subscription: Subscription): boolean;
  /**
   * Starts delivery of a subscription of this node that was created or read while its index could not roll back. The worker that ended under the same hold
   * of its index has delivered `ahead` beyond the cursor.
   */
  begin(subscription: CallbackSubscription, ahead?: AcceptedAhead): void;
}

/** One process alone with its store. */
export function createSoleOwnership(workers: DeliveryWorkers): Ownership {
  return {
    isShared: false,
    owner: async () => undefined,
    claim: async () => {},
    isOwn: () => true,
    begin: (subscription, ahead) => workers.add(subscription, ahead),
  };
}
