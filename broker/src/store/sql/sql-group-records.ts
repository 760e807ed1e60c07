import type { GroupId } from "../../domain/group-id.ts";
import type { Address, Hash } from "../../domain/topic.ts";
import type { GroupRecord, GroupRecords, WriterSet } from "../../ports/group-records.ts";
import type { GroupChainTable, SqlDatabase } from "./schema.ts";

/** Which chain each group is on, and the writer set of its own signers. */
export class SqlGroupRecords implements GroupRecords {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  async findGroupRecord(groupId: GroupId): Promise<GroupRecord | undefined> {
    const row = await this.#database.relaxed
      .selectFrom("group_chains")
      .select(["chain_id", "genesis_hash", "registry_address", "writers", "writers_owner"])
      .where("group_id", "=", groupId)
      .executeTakeFirst();
    if (row === undefined) return undefined;
    return {
      chainId: row.chain_id,
      genesisHash: row.genesis_hash as Hash, // Unchanged since `saveGroupRecord` stored it.
      registryAddress: row.registry_address as Address, // Unchanged since `saveGroupRecord` stored it.
      ...toWriters(row),
    };
  }

  async saveGroupRecord(groupId: GroupId, record: GroupRecord): Promise<GroupRecord> {
    await this.#database.durable
      .insertInto("group_chains")
      .values({
        group_id: groupId,
        chain_id: record.chainId,
        genesis_hash: record.genesisHash,
        registry_address: record.registryAddress,
        writers: record.writers?.number ?? null,
        writers_owner: record.writers?.owner ?? null,
      })
      .onConflict((conflict) => conflict.column("group_id").doNothing())
      .execute();
    return (await this.findGroupRecord(groupId)) ?? record;
  }

  async saveWriters(groupId: GroupId, writers: WriterSet, former?: WriterSet): Promise<WriterSet | undefined> {
    await this.#database.durable
      .updateTable("group_chains")
      .set({ writers: writers.number, writers_owner: writers.owner })
      .where("group_id", "=", groupId)
      .where((it) => {
        const none = it("writers", "is", null);
        return former === undefined
          ? none
          : it.or([none, it.and({ writers: former.number, writers_owner: former.owner })]);
      })
      .execute();
    return (await this.findGroupRecord(groupId))?.writers;
  }
}

function toWriters(row: Pick<GroupChainTable, "writers" | "writers_owner">): Pick<GroupRecord, "writers"> {
  if (row.writers === null) return {};
  return { writers: { number: row.writers, owner: row.writers_owner as Address } }; // Written together.
}
