import { type CallbackSubscription, type Failure, nothingFailed } from "../../domain/subscription.ts";
import { matchesFilter } from "../../domain/topic-filter.ts";
import type { SubscriptionMove } from "../../ports/subscription-search.ts";
import type { EventPlace } from "../batch-events.ts";
import { failureOf } from "../deliver/delivery-progress.ts";

/** What an order does to a subscription before its failures are known. */
interface Ordered {
  readonly current: CallbackSubscription;
  readonly move: SubscriptionMove;
  /** The event that failed; undefined where the order cannot leave it out. */
  readonly failed: EventPlace | undefined;
}

/**
 * The failures that an order leaves. They say when delivery gives up, so an order clears them only where they are those of another event or receiver, or
 * of a delivery that the broker gave up.
 */
export function failureAfter({ current, move, failed }: Ordered): Failure {
  const { cursor = current.cursor, filter = current.filter, delivery = current.delivery } = move;
  const isNewEvent = cursor !== current.cursor || (failed !== undefined && !matchesFilter(filter, failed.topic));
  const isNewReceiver = delivery.url !== current.delivery.url;
  const wasGivenUp = current.state === "suspended" && move.state !== undefined;
  return isNewEvent || isNewReceiver || wasGivenUp ? nothingFailed : failureOf(current);
}
