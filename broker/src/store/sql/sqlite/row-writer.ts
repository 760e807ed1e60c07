import { createIndexQueries } from "../index-queries.ts";
import type { RowWriter, Schema } from "../schema.ts";
import { createSubscriptionQueries } from "../subscription-queries.ts";
import type { SqliteSession } from "./session.ts";
import type { Kysely } from "kysely";

/** Writes row by row, the fastest way for a database inside the process. The transaction holds the session, so nothing else runs on it. */
export function createRowWriter(session: SqliteSession, database: Kysely<Schema>): RowWriter {
  const { insertTopic, updateTopic, insertBatch } = createIndexQueries(database);
  const { insert: insertSubscription } = createSubscriptionQueries(database);
  return {
    insertTopics: async (_, rows) => session.executeEach(insertTopic, rows),
    updateTopics: async (_, changes) => void (await session.executeEach(updateTopic, changes)),
    insertBatches: async (_, rows) => void (await session.executeEach(insertBatch, rows)),
    insertSubscriptions: async (_, rows) => session.executeEach(insertSubscription, rows),
  };
}
