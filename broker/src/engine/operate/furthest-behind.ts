import type { Position } from "../../domain/position.ts";
import type { CallbackSubscription } from "../../domain/subscription.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";

/** Maximum number of subscriptions whose waiting events one measurement of a group counts: the furthest behind, one for each topic or pattern. */
export const lagSubscriptionsMax = 100;
/** Subscriptions kept before the list is cut to {@link lagSubscriptionsMax}. */
const keptMax = 2 * lagSubscriptionsMax;

export interface LaggingSubscription {
  readonly subscription: CallbackSubscription;
  /** Position of the event that the subscription waits for, or its cursor if the worker has not read that event yet. */
  readonly position: Position;
}

/**
 * Finds the subscriptions of a group that are furthest behind. Of several with the same topic or pattern it keeps the one with the lowest cursor, because the
 * most events wait for that one.
 */
export class FurthestBehind {
  #byFilter = new Map<TopicFilter, LaggingSubscription>();

  add(waiting: LaggingSubscription): void {
    const { filter, cursor } = waiting.subscription;
    const known = this.#byFilter.get(filter);
    if (known !== undefined && known.subscription.cursor <= cursor) return;
    this.#byFilter.set(filter, waiting);
    if (this.#byFilter.size >= keptMax) this.#keep(this.list());
  }

  /** The subscription that waits for the oldest event comes first. */
  list(): readonly LaggingSubscription[] {
    const all = [...this.#byFilter.values()].toSorted((left, right) => left.position - right.position);
    return all.slice(0, lagSubscriptionsMax);
  }

  #keep(furthest: readonly LaggingSubscription[]): void {
    this.#byFilter = new Map(furthest.map((waiting) => [waiting.subscription.filter, waiting]));
  }
}
