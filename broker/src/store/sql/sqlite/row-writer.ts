import { createIndexQueries } from "../index-queries.ts";
import type { RowWriter, Schema } from "../schema.ts";
import type { SqliteSession } from "./session.ts";
import type { Kysely } from "kysely";

/** Writes row by row, which is the fastest way where the database is within the process. The transaction has the session, so that nothing else runs on it. */
export function createRowWriter(session: SqliteSession, database: Kysely<Schema>): RowWriter {
  const { insertTopic, updateTopic, insertBatch } = createIndexQueries(database);
  return {
    insertTopics: async (_, rows) => session.executeEach(insertTopic, rows),
    updateTopics: async (_, changes) => void (await session.executeEach(updateTopic, changes)),
    insertBatches: async (_, rows) => void (await session.executeEach(insertBatch, rows)),
  };
}
