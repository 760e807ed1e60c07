import { sql, type Transaction } from "kysely";
import type { SessionId, SessionKey } from "../../../ports/session-store.ts";
import type { Schema, SessionFilterTable, SessionTable, SqlDatabase } from "../schema.ts";
import { isIntactSession } from "./session-rows.ts";

/** Maximum number of sessions that one statement reads. */
const sessionsReadMax = 500;

export interface DroppedRows {
  readonly sessions: readonly SessionId[];
  /** Identifiers of the filters that had no session. */
  readonly filters: readonly string[];
}

/**
 * Drops damaged sessions: a client that continued one could miss events without noticing. Instead the client learns of the loss: "session present: no".
 * Also drops filters without a session.
 */
export async function dropDamagedSessions(
  database: SqlDatabase,
  remove: (key: SessionKey) => Promise<boolean>,
): Promise<DroppedRows> {
  const sessions: SessionId[] = [];
  for (let after = ""; ; ) {
    const page = database.relaxed.selectFrom("sessions").selectAll().where("session_id", ">", after);
    const rows = await page.orderBy("session_id").limit(sessionsReadMax).execute();
    const last = rows.at(-1);
    if (last === undefined) break;
    after = last.session_id;
    for (const { session_id } of await findDamaged(database.relaxed, rows)) {
      const key = await recheck(database, session_id);
      if (key !== undefined && (await remove(key))) sessions.push(key.id);
    }
  }
  const orphans = await sql<{ readonly subscription_id: string }>`
    delete from session_subscriptions
    where not exists (select 1 from sessions where sessions.session_id = session_subscriptions.session_id)
    returning subscription_id`.execute(database.durable);
  return { sessions, filters: orphans.rows.map(({ subscription_id }) => subscription_id) };
}

async function findDamaged(
  database: Pick<Transaction<Schema>, "selectFrom">,
  rows: readonly SessionTable[],
): Promise<readonly SessionTable[]> {
  const ids = rows.map(({ session_id }) => session_id);
  const filters = await database
    .selectFrom("session_subscriptions")
    .selectAll()
    .where("session_id", "in", ids)
    .execute();
  const bySession = new Map(ids.map((id) => [id, [] as SessionFilterTable[]]));
  for (const filter of filters) bySession.get(filter.session_id)?.push(filter);
  return rows.filter((row) => !isIntactSession(row, bySession.get(row.session_id) ?? []));
}

/** Locks a session's row, and reads its rows again: another node may have changed them between the first two reads. Returns the key of a damaged session. */
async function recheck(database: SqlDatabase, id: string): Promise<SessionKey | undefined> {
  return database.relaxed.transaction().execute(async (transaction) => {
    const query = transaction.selectFrom("sessions").selectAll().where("session_id", "=", id);
    const row = await database.locking(query).executeTakeFirst();
    if (row === undefined || (await findDamaged(transaction, [row])).length === 0) return undefined;
    return { id: row.session_id as SessionId, epoch: row.epoch }; // Unchanged since it was stored.
  });
}
