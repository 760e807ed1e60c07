import type { KeyClaim, TakenKey } from "../../ports/publish-keys.ts";
import type { SessionId, SessionKey } from "../../ports/session-store.ts";
import type { KeySession } from "../key-session.ts";

/** What the ledger asks for a whole transaction. */
export function mayAllStart(claims: readonly Claim[]): (() => boolean) | undefined {
  const checks = claims.flatMap(({ mayStart }) => mayStart ?? []);
  return checks.length === 0 ? undefined : () => checks.every((check) => check());
}

/** What holds while no other node has taken a session from its connection. */
export function fenceOf(session: KeySession | undefined): SessionKey | undefined {
  if (session?.epoch === undefined) return undefined;
  return { id: session.id as SessionId, epoch: session.epoch }; // One with an epoch is in the store.
}

/** A publish that its producer named by a key, on its way into a transaction. */
export interface Claim {
  /** What to record before the ledger is asked; undefined once it is recorded. */
  readonly unrecorded: Omit<KeyClaim, "after" | "recordedAt"> | undefined;
  /** Asked by the ledger before it sends the transaction; undefined where it always may. */
  readonly mayStart: (() => boolean) | undefined;
  onRecorded(): void;
  /** The key has a row already, or its session is another's: the publish was taken out of its transaction. */
  onTaken(row: TakenKey): void;
  /** The key could not be recorded: the publish was taken out of its transaction. */
  onFailed(error: unknown): void;
}
