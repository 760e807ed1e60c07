import type { GroupId } from "../domain/group-id.ts";
import type { Address, Hash } from "../domain/topic.ts";

/** The chain of a group, as found at its first start. */
export interface GroupRecord {
  readonly chainId: number;
  /** Hash of the chain's first block. */
  readonly genesisHash: Hash;
  /** Address of the group's topic registry. */
  readonly registryAddress: Address;
  /** The registry's set of the group's own signers; undefined until one is saved. */
  readonly writers?: number;
}

/** Remembers each group's chain, so that the broker notices another chain behind the same address. */
export interface GroupRecords {
  findGroupRecord(groupId: GroupId): Promise<GroupRecord | undefined>;
  /** Saves the first record of a group and ignores later ones, so that concurrent nodes agree. Returns the saved record, which is durable. */
  saveGroupRecord(groupId: GroupId, record: GroupRecord): Promise<GroupRecord>;
  /** Saves the first set of writers of a group that has a record. Returns the saved one, which is durable; undefined without a record. */
  saveWriters(groupId: GroupId, writers: number): Promise<number | undefined>;
}
