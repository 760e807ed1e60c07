import { sql } from "kysely";
import { pagesOf } from "../pages.ts";
import type { BatchKey, BatchTable, RowWriter, TopicChange } from "../schema.ts";

/** Writes many rows with one statement, since each statement costs a round trip. */
export const rowWriter: RowWriter = {
  insertTopics: async (transaction, rows) => {
    const keys = [];
    for (const page of pagesOf(rows)) {
      keys.push(...(await transaction.insertInto("topics").values(page).returning(["topic_id", "ordinal"]).execute()));
    }
    return keys;
  },
  updateTopics: async (transaction, changes) => {
    for (const page of pagesOf(changes)) await changeQuery(page).execute(transaction);
  },
  insertBatches: async (transaction, rows) => {
    for (const page of pagesOf(rows)) await transaction.insertInto("batches").values(page).execute();
  },
  dropEvents: async (transaction, rows) => (await dropQuery(rows).execute(transaction)).rows,
  insertSubscriptions: async (transaction, rows) => {
    const made = [];
    for (const page of pagesOf(rows)) {
      const insert = transaction.insertInto("subscriptions").values(page);
      made.push(
        ...(await insert
          .onConflict((taken) => taken.column("id").doNothing())
          .returning("id")
          .execute()),
      );
    }
    return made;
  },
};

/** Only one transaction at a time changes topics of a group, so the order of the rows does not matter. */
export function changeQuery(changes: readonly TopicChange[]) {
  const column = (name: keyof TopicChange): readonly number[] => changes.map((change) => change[name]);
  return sql`
    update topics set sequence = given.sequence, block_number = given.block_number, closed = given.closed, event_count = given.event_count,
      checksum = given.checksum
    from unnest(${column("topic_id")}::bigint[], ${column("sequence")}::bigint[], ${column("block_number")}::bigint[],
      ${column("closed")}::bigint[], ${column("event_count")}::bigint[], ${column("checksum")}::bigint[])
      as given (topic_id, sequence, block_number, closed, event_count, checksum)
    where topics.topic_id = given.topic_id`;
}

/** Drops the events of the rows that still have any. PostgreSQL finds the length of a stored value without reading the value. */
function dropQuery(rows: readonly BatchKey[]) {
  const column = (name: keyof BatchKey): readonly unknown[] => rows.map((row) => row[name]);
  return sql<Pick<BatchTable, "last_position">>`
    update batches set events = '', checksum = -1 - batches.checksum
    from unnest(${column("group_id")}::text[], ${column("last_position")}::bigint[], ${column("first_sequence")}::bigint[],
      ${column("transaction_hash")}::text[], ${column("events_checksum")}::bigint[])
      as given (group_id, last_position, first_sequence, transaction_hash, events_checksum)
    where batches.group_id = given.group_id and batches.last_position = given.last_position
      and batches.first_sequence = given.first_sequence and batches.transaction_hash = given.transaction_hash
      and batches.events_checksum = given.events_checksum and length(batches.events) > 0 and batches.checksum >= 0
    returning batches.last_position`;
}
