import type { Kysely, Transaction } from "kysely";
import type { GroupId } from "../../../domain/group-id.ts";
import { type IndexedBlock, type SkippedEntry, skippedEntriesMax } from "../../../ports/store.ts";
import { pagesOf } from "../pages.ts";
import { checkRow, withChecksum } from "../row-checksums.ts";
import type { Schema, SkippedEntryTable, SqlDatabase } from "../schema.ts";

/** Stores skipped entries and deletes the oldest beyond the limit. Sends no statement if there are none. */
export async function rememberSkipped(
  transaction: Transaction<Schema>,
  groupId: GroupId,
  blocks: readonly IndexedBlock[],
): Promise<void> {
  const entries = blocks.flatMap(({ skippedEntries = [] }) => skippedEntries);
  if (entries.length === 0) return;
  const rows = entries.slice(-skippedEntriesMax).map((entry) => toRow(groupId, entry));
  for (const page of pagesOf(rows)) await transaction.insertInto("skipped_entries").values(page).execute();
  const newest = await newestFirst(transaction, groupId).offset(skippedEntriesMax).limit(1).executeTakeFirst();
  if (newest === undefined) return;
  const { block_number: block, log_index: index } = newest;
  await transaction
    .deleteFrom("skipped_entries")
    .where("group_id", "=", groupId)
    .where((row) =>
      row.or([
        row("block_number", "<", block),
        row.and([row("block_number", "=", block), row("log_index", "<=", index)]),
      ]),
    )
    .execute();
}

/** Deletes the skipped entries of the blocks after number `after`. */
export async function dropSkipped(transaction: Transaction<Schema>, groupId: GroupId, after: number): Promise<void> {
  await transaction
    .deleteFrom("skipped_entries")
    .where("group_id", "=", groupId)
    .where("block_number", ">", after)
    .execute();
}

export async function listSkipped(
  database: SqlDatabase,
  groupId: GroupId,
  atMost: number,
): Promise<readonly SkippedEntry[]> {
  const rows = await newestFirst(database.relaxed, groupId).limit(atMost).execute();
  return rows.map((row) => fromRow(checkRow(database, "skipped_entries", row)));
}

function newestFirst(database: Kysely<Schema>, groupId: GroupId) {
  return database
    .selectFrom("skipped_entries")
    .selectAll()
    .where("group_id", "=", groupId)
    .orderBy("block_number", "desc")
    .orderBy("log_index", "desc");
}

function toRow(groupId: GroupId, entry: SkippedEntry): SkippedEntryTable {
  return withChecksum("skipped_entries", {
    group_id: groupId,
    block_number: entry.blockNumber,
    log_index: entry.logIndex,
    code: entry.code,
    reason: entry.reason,
    address: entry.address,
    transaction_hash: entry.transactionHash,
    sender: entry.sender ?? null,
  });
}

function fromRow(row: SkippedEntryTable): SkippedEntry {
  return {
    code: row.code as SkippedEntry["code"], // This and the next values are unchanged since they were stored.
    reason: row.reason,
    address: row.address as SkippedEntry["address"],
    blockNumber: row.block_number,
    transactionHash: row.transaction_hash as SkippedEntry["transactionHash"],
    logIndex: row.log_index,
    ...(row.sender !== null && { sender: row.sender as SkippedEntry["address"] }),
  };
}
