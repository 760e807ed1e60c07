import type { GroupId } from "../domain/group-id.ts";
import type { Address, Hash } from "../domain/topic.ts";

/** A set of accounts in the registry. After a reorg, or in a new registry, the set with this number may belong to another owner. */
export interface WriterSet {
  readonly number: number;
  readonly owner: Address;
}

/** The chain of a group, as found at its first start. */
export interface GroupRecord {
  readonly chainId: number;
  /** Hash of the chain's first block. */
  readonly genesisHash: Hash;
  /** Address of the group's topic registry. */
  readonly registryAddress: Address;
  /** The registry's set of the group's own signers; undefined until one is saved. */
  readonly writers?: WriterSet;
}

/** Remembers each group's chain, so that the broker notices a different chain at the same address. */
export interface GroupRecords {
  findGroupRecord(groupId: GroupId): Promise<GroupRecord | undefined>;
  /** Saves the first record of a group and ignores later ones, so that concurrent nodes agree. Returns the saved record, which is durable. */
  saveGroupRecord(groupId: GroupId, record: GroupRecord): Promise<GroupRecord>;
  /**
   * Saves a set of writers for a group that has a record, if the group has no set yet or its set is still `former`. Returns the stored set, which is
   * durable; undefined if the group has no record.
   */
  saveWriters(groupId: GroupId, writers: WriterSet, former?: WriterSet): Promise<WriterSet | undefined>;
}
