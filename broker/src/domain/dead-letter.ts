import type { EventId } from "@stele/wire";
import type { NodeId } from "./node.ts";
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

/** Reason of a dead letter that a node is delivering again, before the identifier of the node. */
const takenReason = "it is being delivered again by the node ";

/** How long a dead letter is its node's, in milliseconds: longer than an order makes attempts. */
const takenMsMax = 60_000;

export interface Taking {
  readonly nodeId: NodeId;
  readonly now: number;
}

/** A dead letter as it is while a node delivers it again. */
export function takeLetter(letter: DeadLetter, { nodeId, now }: Taking): DeadLetter {
  return { ...letter, attempts: letter.attempts + 1, reason: takenReason + nodeId, failedAt: now };
}

/** The node, other than this one, that may be delivering it, if it still lives. Nodes have clocks of their own, so a time to come counts as well. */
export function findTaker({ reason, failedAt }: DeadLetter, { nodeId, now }: Taking): string | undefined {
  if (!reason.startsWith(takenReason) || Math.abs(now - failedAt) >= takenMsMax) return undefined;
  const taker = reason.slice(takenReason.length);
  return taker === nodeId ? undefined : taker;
}
