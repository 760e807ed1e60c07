import type { KeyClaim, TakenKey } from "../../ports/publish-keys.ts";
import type { SessionId, SessionKey } from "../../ports/session-store.ts";
import type { KeySession } from "../key-session.ts";

/** The check of a whole transaction: all its claims must allow the start. Undefined if none has a check. */
export function mayAllStart(claims: readonly Claim[]): (() => boolean) | undefined {
  const checks = claims.flatMap(({ mayStart }) => mayStart ?? []);
  return checks.length === 0 ? undefined : () => checks.every((check) => check());
}

/** Identifier and epoch of a stored session, valid until another node takes the session over. Undefined without a session, or if it is not stored. */
export function fenceOf(session: KeySession | undefined): SessionKey | undefined {
  if (session?.epoch === undefined) return undefined;
  return { id: session.id as SessionId, epoch: session.epoch }; // A session with an epoch is in the store.
}

/** A publish with a key, on its way into a transaction. */
export interface Claim {
  /** What to record before the ledger gets the event; undefined once it is recorded. */
  readonly unrecorded: Omit<KeyClaim, "after" | "recordedAt"> | undefined;
  /** The ledger calls this before it sends the transaction; `false` forbids to send. Undefined if it may always send. */
  readonly mayStart: (() => boolean) | undefined;
  /** The session of the publish, and when the publish came, in milliseconds of the monotonic clock. Undefined without a session. */
  readonly order: { readonly session: string; readonly since: number } | undefined;
  onRecorded(): void;
  /** Called if the key already has a row, or another node has the session. The publish leaves its transaction. */
  onTaken(row: TakenKey): void;
  /** Called if the key could not be recorded. The publish leaves its transaction. */
  onFailed(error: unknown): void;
}
