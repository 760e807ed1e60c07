import type { EventId } from "@stele/wire";
import type { DeadLetter } from "../domain/dead-letter.ts";
import type { Position } from "../domain/position.ts";
import type { SubscriptionId } from "../domain/subscription.ts";

/** A page of the dead letters of one subscription, by position. */
export interface DeadLetterPage {
  /** The page begins after this position; undefined for the first page. */
  readonly after: Position | undefined;
  readonly limit: number;
}

/**
 * Dead letters of subscriptions. `saveProgress` writes them in the transaction in which the cursor passes their events. A cursor that moves back
 * removes the dead letters after it, since their events are delivered again. A removed subscription removes all of its dead letters. Changes are
 * durable when the call returns.
 */
export interface DeadLetters {
  /** In ascending position. */
  list(id: SubscriptionId, page: DeadLetterPage): Promise<readonly DeadLetter[]>;
  /** In ascending position. Returns several if the subscription gets two topics whose events have the same eventId. */
  find(id: SubscriptionId, eventId: EventId): Promise<readonly DeadLetter[]>;
  count(id: SubscriptionId): Promise<number>;
  /** Removes the dead letters that have not changed since they were read; returns how many. */
  remove(letters: readonly DeadLetter[]): Promise<number>;
  /** Replaces a dead letter by one of the same event. Returns false if it has changed since it was read, or is gone. */
  replace(letter: DeadLetter, next: Pick<DeadLetter, "attempts" | "reason" | "failedAt">): Promise<boolean>;
}
