import type { EventId } from "@stele/wire";
import type { Position } from "./position.ts";
import type { SubscriptionId } from "./subscription.ts";
import type { TopicName } from "./topic-name.ts";

/** Dead letters that one subscription may have. When it has so many, the next event that cannot be delivered suspends it. */
export const deadLettersMax = 1_000;

/** Longest reason that a dead letter keeps, in characters. */
const reasonCharactersMax = 256;

/** An event that a subscription was skipped past because its receiver did not accept it. It is at the cursor of the subscription, or before it. */
export interface DeadLetter {
  readonly subscriptionId: SubscriptionId;
  readonly position: Position;
  readonly eventId: EventId;
  readonly topic: TopicName;
  /** Failed attempts. */
  readonly attempts: number;
  /** Why the newest of them failed. */
  readonly reason: string;
  /** When it failed, in milliseconds since the epoch. */
  readonly failedAt: number;
}

/** A reason as a dead letter keeps it. PostgreSQL stores no NUL character. */
export function toLetterReason(text: string): string {
  return text.replaceAll("\0", "").slice(0, reasonCharactersMax);
}
