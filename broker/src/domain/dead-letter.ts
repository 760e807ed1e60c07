import type { EventId } from "@stele/wire";
import type { NodeId } from "./node.ts";
import type { Position } from "./position.ts";
import type { SubscriptionId } from "./subscription.ts";
import type { TopicName } from "./topic-name.ts";

/** Maximum number of dead letters of one subscription. At that number, the next event that cannot be delivered suspends the subscription. */
export const deadLettersMax = 1_000;

/** Longest reason that a dead letter keeps, in characters. */
const reasonCharactersMax = 256;

/** An event that a subscription skipped because its receiver did not accept it. Its position is at or before the cursor of the subscription. */
export interface DeadLetter {
  readonly subscriptionId: SubscriptionId;
  readonly position: Position;
  readonly eventId: EventId;
  readonly topic: TopicName;
  /** Failed attempts. */
  readonly attempts: number;
  /** Why the newest attempt failed. */
  readonly reason: string;
  /** When the newest attempt failed, in milliseconds since the epoch. */
  readonly failedAt: number;
}

/**
 * Whether two reads of a subscription's dead letter returned the same one, unchanged. After a reorg, or after somebody has removed and recreated the
 * subscription, another dead letter may have the same position, eventId and number of attempts: only the time tells the two apart.
 */
export function isSameLetter(left: DeadLetter, right: DeadLetter): boolean {
  return (
    left.position === right.position &&
    left.eventId === right.eventId &&
    left.attempts === right.attempts &&
    left.failedAt === right.failedAt
  );
}

/** Shortens a reason for a dead letter. Removes NUL characters, which PostgreSQL cannot store, and replaces halves of surrogate pairs, which no database can. */
export function toLetterReason(text: string): string {
  return text
    .replaceAll("\0", "")
    .slice(0, reasonCharactersMax)
    .replaceAll(/\p{Surrogate}/gu, "\ufffd");
}

/** Reason of a dead letter while a node delivers it again; the identifier of the node follows. */
const reservedReason = "it is being delivered again by the node ";

/** How long a node reserves a dead letter to deliver it again, in milliseconds: longer than the attempts of one redelivery take. */
const reservedMsMax = 60_000;

export interface Reservation {
  readonly nodeId: NodeId;
  readonly now: number;
}

/** Marks a dead letter as being delivered again by a node. */
export function reserveLetter(letter: DeadLetter, { nodeId, now }: Reservation): DeadLetter {
  return { ...letter, attempts: letter.attempts + 1, reason: reservedReason + nodeId, failedAt: now };
}

/**
 * The other node that is delivering a dead letter again, if it has not died meanwhile. Undefined if there is none. Clocks differ: `failedAt` may be in the
 * future.
 */
export function findReservingNode({ reason, failedAt }: DeadLetter, { nodeId, now }: Reservation): string | undefined {
  if (!reason.startsWith(reservedReason) || Math.abs(now - failedAt) >= reservedMsMax) return undefined;
  const node = reason.slice(reservedReason.length);
  return node === nodeId ? undefined : node;
}
