import type { EventBatch } from "../../domain/event.ts";
import { type CallbackSubscription, type Failure, nothingFailed } from "../../domain/subscription.ts";
import { matchesFilter } from "../../domain/topic-filter.ts";
import type { SubscriptionMove } from "../../ports/subscription-search.ts";
import { failureOf } from "../deliver/delivery-progress.ts";

/** An order for a subscription, and the batch of the event that failed before it. */
interface Ordered {
  readonly current: CallbackSubscription;
  readonly move: SubscriptionMove;
  /** Undefined if the order keeps the filter, if no attempt has failed, or if the event is gone. */
  readonly failed: EventBatch | undefined;
}

/**
 * The failure counts after an order. They decide when the broker gives up, so an order resets them only if it leads to another event or another URL, or
 * if it changes the state of a suspended subscription.
 */
export function failureAfter({ current, move, failed }: Ordered): Failure {
  const { cursor = current.cursor, filter = current.filter, delivery = current.delivery } = move;
  const isNewEvent = cursor !== current.cursor || (failed !== undefined && !matchesFilter(filter, failed.topic));
  const isNewReceiver = delivery.url !== current.delivery.url;
  const wasGivenUp = current.state === "suspended" && move.state !== undefined;
  return isNewEvent || isNewReceiver || wasGivenUp ? nothingFailed : failureOf(current);
}
