import type { Transaction } from "kysely";
import type { SessionWithFilters } from "../../../ports/session-store.ts";
import type { Schema, SessionTable, SqlDatabase } from "../schema.ts";
import { fromFilterRow, fromSessionRow, isIntactSession } from "./session-rows.ts";

/** The session of a row that the caller has locked. Undefined if the row or that of a filter is damaged, or a filter is missing. */
export async function readSession(
  database: Pick<Transaction<Schema>, "selectFrom">,
  row: SessionTable,
): Promise<SessionWithFilters | undefined> {
  const rows = await database
    .selectFrom("session_subscriptions")
    .selectAll()
    .where("session_id", "=", row.session_id)
    .orderBy("subscription_id")
    .execute();
  const session = fromSessionRow(row);
  if (session === undefined || !isIntactSession(row, rows)) return undefined;
  return { session, filters: rows.map(fromFilterRow).filter((filter) => filter !== undefined) };
}

/**
 * Like `readSession`, for a row that the caller has not locked: the filters may have changed since the row was read. If they do not fit the row, locks
 * the row and reads both again.
 */
export async function readUnlocked(database: SqlDatabase, row: SessionTable): Promise<SessionWithFilters | undefined> {
  const read = await readSession(database.relaxed, row);
  if (read !== undefined) return read;
  return database.relaxed.transaction().execute(async (transaction) => {
    const query = transaction.selectFrom("sessions").selectAll().where("session_id", "=", row.session_id);
    const locked = await database.locking(query).executeTakeFirst();
    return locked && readSession(transaction, locked);
  });
}
