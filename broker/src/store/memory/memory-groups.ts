import type { GroupId } from "../../domain/group-id.ts";
import type { GroupRecord, WriterSet } from "../../ports/group-records.ts";
import { MemoryJournal } from "./memory-journal.ts";

/** The part of the memory store that records the chain of each group, and the writer set of the group's own signers. */
export abstract class MemoryGroups extends MemoryJournal {
  readonly #records = new Map<GroupId, GroupRecord>();

  async findGroupRecord(groupId: GroupId): Promise<GroupRecord | undefined> {
    return this.#records.get(groupId);
  }

  async saveGroupRecord(groupId: GroupId, record: GroupRecord): Promise<GroupRecord> {
    const kept = this.#records.get(groupId) ?? record;
    this.#records.set(groupId, kept);
    return kept;
  }

  async saveWriters(groupId: GroupId, writers: WriterSet, former?: WriterSet): Promise<WriterSet | undefined> {
    const record = this.#records.get(groupId);
    if (record === undefined) return undefined;
    const { number, owner } = record.writers ?? {};
    const kept = number === former?.number && owner === former?.owner ? writers : (record.writers ?? writers);
    this.#records.set(groupId, { ...record, writers: kept });
    return kept;
  }
}
