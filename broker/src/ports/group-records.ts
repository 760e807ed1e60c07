import type { GroupId } from "../domain/group-id.ts";
import type { Address, Hash } from "../domain/topic.ts";

/** A set of accounts in the registry. Its number may come to be another owner's when the chain takes blocks back, or loses its registry. */
export interface WriterSet {
  readonly number: number;
  readonly owner: Address;
}

/** Which chain a group is on, as it was found at its first start. */
export interface GroupRecord {
  readonly chainId: number;
  /** Hash of the chain's first block. */
  readonly genesisHash: Hash;
  /** Where the group's topic registry is. */
  readonly registryAddress: Address;
  /** The registry's set of the group's own signers; left out until one is saved. */
  readonly writers?: WriterSet;
}

/** Remembers each group's chain, so that another chain behind the same address is not taken for it. */
export interface GroupRecords {
  findGroupRecord(groupId: GroupId): Promise<GroupRecord | undefined>;
  /**
   * Keeps the first record of a group, and no other: nodes that save at once all agree on one. Answers the one that is kept. On disk when it
   * answers.
   */
  saveGroupRecord(groupId: GroupId, record: GroupRecord): Promise<GroupRecord>;
  /**
   * Keeps a set of writers for a group that has a record and no set, or still `gone`; answers the one that is kept, undefined where there is
   * no record. On disk when it answers.
   */
  saveWriters(groupId: GroupId, writers: WriterSet, gone?: WriterSet): Promise<WriterSet | undefined>;
}
