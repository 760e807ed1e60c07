/** One row for each dead letter of a subscription; see the domain's DeadLetter. */
export interface DeadLetterTable {
  readonly subscription_id: string;
  readonly position: number;
  readonly event_id: string;
  readonly topic: string;
  readonly attempts: number;
  readonly reason: string;
  readonly failed_at: number;
  readonly checksum: number;
}
