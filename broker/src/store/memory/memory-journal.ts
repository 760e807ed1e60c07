import type { GroupId } from "../../domain/group-id.ts";
import type { Address } from "../../domain/topic.ts";
import type { Journal, JournalEntry } from "../../ports/journal.ts";
import { MemoryPublishKeys } from "./memory-publish-keys.ts";

type Entries = Map<number, JournalEntry>;

/** The journal of the memory store. */
export abstract class MemoryJournal extends MemoryPublishKeys implements Journal {
  readonly #groups = new Map<GroupId, Map<Address, Entries>>();

  async recordTransactions(entries: readonly JournalEntry[]): Promise<void> {
    for (const entry of entries) this.#of(entry.groupId, entry.sender).set(entry.nonce, entry);
  }

  async listTransactions(groupId: GroupId, sender: Address): Promise<readonly JournalEntry[]> {
    return [...this.#of(groupId, sender).values()].toSorted((left, right) => left.nonce - right.nonce);
  }

  async removeTransactions(groupId: GroupId, sender: Address, nonces: readonly number[]): Promise<void> {
    for (const nonce of nonces) this.#of(groupId, sender).delete(nonce);
  }

  #of(groupId: GroupId, sender: Address): Entries {
    const senders = this.#groups.get(groupId) ?? new Map<Address, Entries>();
    const entries = senders.get(sender) ?? new Map<number, JournalEntry>();
    this.#groups.set(groupId, senders.set(sender, entries));
    return entries;
  }
}
