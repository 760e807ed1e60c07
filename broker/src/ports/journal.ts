import type { GroupId } from "../domain/group-id.ts";
import type { Address, Hash } from "../domain/topic.ts";

/** One signed version of a transaction. Versions with the same nonce differ in their fees; the chain includes at most one of them. */
export interface SignedVariant {
  readonly hash: Hash;
  /** The signed transaction, encoded as for the chain. */
  readonly raw: Uint8Array;
}

/** A transaction that may have been sent. */
export interface JournalEntry {
  readonly groupId: GroupId;
  readonly sender: Address;
  readonly nonce: number;
  /** Newest first; at least one. */
  readonly variants: readonly SignedVariant[];
  /** When the newest version was signed, in milliseconds since the epoch. */
  readonly recordedAt: number;
}

/**
 * Signed transactions of this broker whose outcome is open, for the next run. The ledger records an entry before it sends the transaction, and
 * removes it when the outcome is final.
 *
 * Guarantees: each call is one transaction, and durable when it returns.
 */
export interface Journal {
  /** Each entry replaces the one with the same group, sender and nonce. */
  recordTransactions(entries: readonly JournalEntry[]): Promise<void>;
  /** Ascending by nonce. */
  listTransactions(groupId: GroupId, sender: Address): Promise<readonly JournalEntry[]>;
  /** Ignores nonces without an entry. */
  removeTransactions(groupId: GroupId, sender: Address, nonces: readonly number[]): Promise<void>;
}
