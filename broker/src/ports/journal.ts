import type { GroupId } from "../domain/group-id.ts";
import type { Address, Hash } from "../domain/topic.ts";

/** One signed form of a transaction: those with one nonce differ in their fees, and at most one of them is ever included. */
export interface SignedVariant {
  readonly hash: Hash;
  /** As it is sent to the chain. */
  readonly raw: Uint8Array;
}

/** A transaction that may have been sent. */
export interface JournalEntry {
  readonly groupId: GroupId;
  readonly sender: Address;
  readonly nonce: number;
  /** Newest first; at least one. */
  readonly variants: readonly SignedVariant[];
  /** When the newest one was signed, in milliseconds since the epoch. */
  readonly recordedAt: number;
}

/**
 * The signed transactions of this broker whose fate has to be known by a later run. An entry is recorded before its transaction is
 * sent, and removed once its fate can no longer change.
 *
 * Guarantees: each call is one transaction, and on disk when it answers.
 */
export interface Journal {
  /** Each takes the place of the entry with the same group, sender and nonce. */
  recordTransactions(entries: readonly JournalEntry[]): Promise<void>;
  /** Ascending by nonce. */
  listTransactions(groupId: GroupId, sender: Address): Promise<readonly JournalEntry[]>;
  /** Leaves out nonces without an entry. */
  removeTransactions(groupId: GroupId, sender: Address, nonces: readonly number[]): Promise<void>;
}
