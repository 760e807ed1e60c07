import { createIndexQueries } from "../index/index-queries.ts";
import { prepare } from "../prepared.ts";
import type { BatchKey, BatchTable, RowWriter, Schema } from "../schema.ts";
import { createSubscriptionQueries } from "../subscriptions/subscription-queries.ts";
import type { SqliteSession } from "./session.ts";
import { type Kysely, sql } from "kysely";

/** Writes row by row, the fastest way for a database inside the process. The transaction holds the session, so nothing else runs on it. */
export function createRowWriter(session: SqliteSession, database: Kysely<Schema>): RowWriter {
  const { insertTopic, updateTopic, insertBatch } = createIndexQueries(database);
  const { insert: insertSubscription } = createSubscriptionQueries(database);
  const dropEvents = prepareDrop(database);
  return {
    insertTopics: async (_, rows) => session.executeEach(insertTopic, rows),
    updateTopics: async (_, changes) => void (await session.executeEach(updateTopic, changes)),
    insertBatches: async (_, rows) => void (await session.executeEach(insertBatch, rows)),
    dropEvents: async (_, rows) => session.executeEach(dropEvents, rows),
    insertSubscriptions: async (_, rows) => session.executeEach(insertSubscription, rows),
  };
}

const placeColumns = sql.raw(
  "group_id, ordinal, first_position, last_position, topic_id, first_sequence, events_before, byte_count, " +
    "transaction_hash, log_index, publisher, events_checksum",
);

/**
 * Writes the row again at the end of the table. So whole old pages become empty, and the next batches reuse them. An update would free bytes only inside a
 * page, where no later row can use them.
 */
function prepareDrop(database: Kysely<Schema>) {
  return prepare((key: BatchKey) => {
    const { group_id, last_position, first_sequence, transaction_hash, events_checksum } = key;
    const query = sql<Pick<BatchTable, "last_position">>`
      insert or replace into batches (${placeColumns}, checksum, events)
      select ${placeColumns}, -1 - checksum, x'' from batches where group_id = ${group_id} and last_position = ${last_position}
        and first_sequence = ${first_sequence} and transaction_hash = ${transaction_hash}
        and events_checksum = ${events_checksum} and length(events) > 0 and checksum >= 0
      returning last_position`;
    return { compile: () => query.compile(database) };
  });
}
