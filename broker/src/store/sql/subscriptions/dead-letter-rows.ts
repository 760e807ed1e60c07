import type { DeadLetter } from "../../../domain/dead-letter.ts";
import { fromStored } from "../../../domain/position.ts";
import type { DeadLetterTable } from "./dead-letter-table.ts";
import { checksumOfRow, withChecksum } from "../row-checksums.ts";

export function toLetterRow(letter: DeadLetter): DeadLetterTable {
  return withChecksum("dead_letters", {
    subscription_id: letter.subscriptionId,
    position: letter.position,
    event_id: letter.eventId,
    topic: letter.topic,
    attempts: letter.attempts,
    reason: letter.reason,
    failed_at: letter.failedAt,
  });
}

/** The row must be intact. */
export function fromLetterRow(row: DeadLetterTable): DeadLetter {
  return {
    subscriptionId: row.subscription_id as DeadLetter["subscriptionId"], // This and the next values are unchanged since they were stored.
    position: fromStored(row.position),
    eventId: row.event_id as DeadLetter["eventId"],
    topic: row.topic as DeadLetter["topic"],
    attempts: row.attempts,
    reason: row.reason,
    failedAt: row.failed_at,
  };
}

export function isIntactLetter(row: DeadLetterTable): boolean {
  return checksumOfRow("dead_letters", row) === row.checksum;
}
