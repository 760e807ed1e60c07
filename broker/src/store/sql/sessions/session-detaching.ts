import { type Kysely, type RawBuilder, sql, type Transaction } from "kysely";
import type { GroupId } from "../../../domain/group-id.ts";
import type { NodeId } from "../../../domain/node.ts";
import type { Position } from "../../../domain/position.ts";
import { endsAt, type SessionId, type StoredSession } from "../../../ports/session-store.ts";
import { pagesById, rowsAtOnceMax } from "../pages-by-id.ts";
import type { Schema, SqlDatabase } from "../schema.ts";
import {
  detachedCheckSql,
  nextEpochCheckSql,
  outsideCheckSql,
  positionsCheckSql,
  startCheck,
  startCheckSql,
} from "./session-rows.ts";

/** The session time of a group. If its row is damaged or missing, the newest `detached_at`, or 0, so that no session ends early. */
export function sessionTime(groupId: RawBuilder<unknown>): RawBuilder<number> {
  return sql<number>`coalesce(
    (select ms from session_times as times where times.group_id = ${groupId} and times.ms_check = 3 * times.ms),
    (select max(detached_at) from sessions as others where others.group_id = ${groupId}), 0)`;
}

/** See SessionStore.findSessionTime. */
export async function findSessionTime(database: Kysely<Schema>, groupId: GroupId): Promise<number> {
  const { rows } = await sql<{ ms: number }>`select ${sessionTime(sql`${groupId}`)} as ms`.execute(database);
  return rows[0]?.ms ?? 0;
}

/** Whether a new claim begins a new session: the former session has expired, or lasts only as long as its connection. */
export async function isOver(database: Kysely<Schema>, session: StoredSession): Promise<boolean> {
  const end = endsAt(session);
  if (end === undefined) return session.expiryMs === 0;
  return end <= (await findSessionTime(database, session.groupId));
}

/**
 * See SessionStore.advanceSessionTime. Adds to the time that the row has once it is locked, not when the statement began: other calls may advance the time
 * meanwhile. Replaces a damaged row.
 */
export async function advanceSessionTime(database: Kysely<Schema>, groupId: GroupId, byMs: number): Promise<number> {
  const ms = sql<number>`${sessionTime(sql`${groupId}`)} + ${byMs}`;
  const isIntact = sql<boolean>`session_times.ms_check = 3 * session_times.ms`;
  const next = sql<number>`case when ${isIntact} then session_times.ms + ${byMs} else excluded.ms end`;
  const row = await database
    .insertInto("session_times")
    .values({ group_id: groupId, ms, ms_check: sql<number>`3 * (${ms})` })
    .onConflict((conflict) =>
      conflict.column("group_id").doUpdateSet({ ms: next, ms_check: sql<number>`3 * (${next})` }),
    )
    .returning("ms")
    .executeTakeFirstOrThrow();
  return row.ms;
}

/**
 * Detaches sessions of a group: removes the owner and sets the next epoch. A session that is already detached keeps its `detached_at`. The statement reads the
 * group's session time once: if it read the time for each row, each read took longer than the one before.
 */
export async function detachWhere(
  transaction: Kysely<Schema>,
  groupId: string,
  which: RawBuilder<unknown>,
): Promise<void> {
  const now = sessionTime(sql`${groupId}`);
  await sql`
    update sessions set
      owner = null,
      epoch = epoch + 1,
      state_check = state_check + ${nextEpochCheckSql} + ${detachedCheckSql(now)},
      due_at = coalesce(detached_at, ${now})
        + case when will is not null and will_delay_ms < expiry_ms then will_delay_ms else expiry_ms end,
      detached_at = coalesce(detached_at, ${now})
    where group_id = ${groupId} and ${which}`.execute(transaction);
}

/** See SessionStore.listDetached. */
export function findDetached(database: Kysely<Schema>, groupId: GroupId, atMost: number) {
  return database
    .selectFrom("sessions")
    .select(["session_id", "epoch"])
    .where("group_id", "=", groupId)
    .where("detached_at", "is not", null)
    .orderBy("detached_at")
    .limit(atMost);
}

/** See SessionStore.countDetached. */
export function countDetached(database: Kysely<Schema>, groupId: GroupId) {
  return database
    .selectFrom("sessions")
    .select(({ fn }) => fn.countAll().as("count"))
    .where("group_id", "=", groupId)
    .where("detached_at", "is not", null);
}

/** Moves positions beyond `end` back to it. If `keeper` is given, gives every session that this node does not own a new epoch, and returns those sessions. */
export async function cutBackSessions(
  transaction: Transaction<Schema>,
  { groupId, end, keeper }: { readonly groupId: GroupId; readonly end: Position; readonly keeper: NodeId | undefined },
  database: SqlDatabase,
): Promise<readonly SessionId[]> {
  const refused: SessionId[] = [];
  for await (const rows of pagesById((after) => database.locking(findPage(transaction, groupId, after)).execute())) {
    const ids = database.column(rows.map(({ id }) => id));
    await moveBack(transaction, ids, end);
    if (keeper === undefined) continue;
    const others = await transaction
      .updateTable("sessions")
      .set(({ eb }) => ({ epoch: eb("epoch", "+", 1), state_check: eb("state_check", "+", nextEpochCheckSql) }))
      .where("session_id", "in", ids)
      .where("owner", "is distinct from", keeper)
      .returning("session_id")
      .execute();
    refused.push(...others.map(({ session_id }) => session_id as SessionId)); // Unchanged since it was stored.
  }
  return refused;
}

/** One page of sessions after an id. Locks them: another node could save an unlocked session beyond the end before the session has its new epoch. */
function findPage(transaction: Transaction<Schema>, groupId: GroupId, after: string) {
  return transaction
    .selectFrom("sessions")
    .select("session_id as id")
    .where("group_id", "=", groupId)
    .where("session_id", ">", after)
    .orderBy("session_id")
    .limit(rowsAtOnceMax);
}

/** Moves up to 1,000 sessions and all of their filters. Changes checks by a difference, so that a damaged row stays damaged. */
async function moveBack(transaction: Transaction<Schema>, ids: RawBuilder<string>, end: Position): Promise<void> {
  const least = (column: string): RawBuilder<number> =>
    sql<number>`case when ${sql.ref(column)} > ${end} then ${end} else ${sql.ref(column)} end`;
  const former = positionsCheckSql(sql`cursor`, sql`taken`);
  const [cursor, taken, outside] = [least("cursor"), least("taken"), least("outside")];
  const state_check = sql<number>`state_check - (${former}) + ${positionsCheckSql(cursor, taken)}`;
  const outside_check = sql<number>`outside_check + ${outsideCheckSql(outside)}`;
  await transaction
    .updateTable("sessions")
    .set({ cursor, taken, outside, state_check, outside_check })
    .where("session_id", "in", ids)
    .where((builder) => builder.or([builder("taken", ">", end), builder("outside", ">", end)]))
    .execute();
  await transaction
    .updateTable("session_subscriptions")
    .set({ starts_after: end, checksum: sql<number>`checksum - ${startCheckSql} + ${startCheck(end)}` })
    .where("session_id", "in", ids)
    .where("starts_after", ">", end)
    .execute();
}
