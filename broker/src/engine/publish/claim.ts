import type { DamagedKeyRow, PublishKeyRow } from "../../ports/publish-keys.ts";

/** What the ledger asks for a whole transaction. */
export function mayAllStart(claims: readonly Claim[]): (() => boolean) | undefined {
  const checks = claims.flatMap(({ mayStart }) => mayStart ?? []);
  return checks.length === 0 ? undefined : () => checks.every((check) => check());
}

/** A publish that its producer named by a key, on its way into a transaction. */
export interface Claim {
  /** What to record before the ledger is asked; undefined once it is recorded. */
  readonly unrecorded: Omit<PublishKeyRow, "after" | "recordedAt"> | undefined;
  /** Asked by the ledger before it sends the transaction; undefined where it always may. */
  readonly mayStart: (() => boolean) | undefined;
  onRecorded(): void;
  /** The key has a row already: the publish was taken out of its transaction. */
  onTaken(row: PublishKeyRow | DamagedKeyRow): void;
  /** The key could not be recorded: the publish was taken out of its transaction. */
  onFailed(error: unknown): void;
}
