import { sql, type Transaction } from "kysely";
import { isShared } from "../../../domain/shared-filter.ts";
import type { SessionId, StoredFilter } from "../../../ports/session-store.ts";
import type { StoredShare } from "../../../ports/share-store.ts";
import { checksumOf } from "../../checksum.ts";
import { pagesOf, rowsInsertedMax } from "../pages.ts";
import type { Schema, SqlDatabase } from "../schema.ts";
import { beginShare, type NamedShare } from "./share-restore.ts";
import { fromShareRow, ofShare, toShareRow } from "./share-rows.ts";

/** A transaction on a database, in a group. */
export interface InGroup {
  readonly database: SqlDatabase;
  readonly transaction: Transaction<Schema>;
  readonly groupId: string;
}

/** The shares that a session joins and leaves at once. */
export interface MemberChange {
  readonly sessionId: SessionId;
  readonly put: readonly StoredFilter[];
  readonly removed: readonly string[];
}

/**
 * Number of locks for all shares of a database, several shares for each lock. A session may join thousands of shares. With a lock for each share, a few such
 * sessions would fill the lock table of a PostgreSQL server, which by default has room for 6,400 locks.
 */
const shareLocks = 256;

/**
 * Maximum number of filters that one statement looks up in SQLite, on the main thread: the look-up of a filter reads its members in other groups, and these
 * may be thousands. A database server looks up a whole page, because each statement is a round trip for which the locks are held.
 */
const filtersInProcessMax = 32;

/**
 * Begins the shares that a session joins, if they do not exist. Removes the shares that it leaves, if they have no member left. Call it after writing the
 * session's filters.
 */
export async function changeMembers(at: InGroup, { sessionId, put, removed }: MemberChange): Promise<void> {
  const joined = put.filter(({ filter }) => isShared(filter));
  const left = removed.filter(isShared);
  await lockShares(at, [...joined.map(({ filter }) => filter), ...left]);
  const lengthMax = at.database.isShared ? rowsInsertedMax : filtersInProcessMax;
  for (const page of pagesOf(joined, lengthMax)) await joinLocked(at, sessionId, page);
  for (const page of pagesOf(left, lengthMax)) await leaveLocked(at, page);
}

/** Returns the share; begins it if its row is missing or damaged. Undefined if the share has no intact member. */
export async function findOrBegin(at: InGroup, filter: NamedShare["filter"]): Promise<StoredShare | undefined> {
  await lockShares(at, [filter]);
  return beginLocked(at, filter);
}

/** Call it once in a transaction: all transactions take the locks in the same order, so that they cannot deadlock. */
async function lockShares({ database, transaction, groupId }: InGroup, filters: readonly string[]): Promise<void> {
  const numbers = new Set(filters.map((filter) => checksumOf([groupId, filter]) % shareLocks));
  const ordered = [...numbers].toSorted((left, right) => left - right);
  if (ordered.length > 0)
    await database.lockAll(
      transaction,
      ordered.map((number) => `shares ${number}`),
    );
}

async function beginLocked(at: InGroup, filter: NamedShare["filter"]): Promise<StoredShare | undefined> {
  const { database, transaction, groupId } = at;
  const row = await transaction
    .selectFrom("shares")
    .selectAll()
    .where("group_id", "=", groupId)
    .where("filter", "=", filter)
    .executeTakeFirst();
  const share = row && fromShareRow(row);
  if (share !== undefined) return share;
  if (row !== undefined) database.damaged(`the row of share ${filter} does not match its checksum`); // The call reports the damage.
  return beginShare(transaction, { groupId, filter }, row);
}

/** Begins all shares that are certainly new in few statements: the transaction holds locks that may delay other sessions. */
async function joinLocked(at: InGroup, sessionId: SessionId, put: readonly StoredFilter[]): Promise<void> {
  const { database, transaction, groupId } = at;
  const rows = await transaction
    .selectFrom("shares")
    .selectAll()
    .where("group_id", "=", groupId)
    .where("filter", "in", database.column(put.map(({ filter }) => filter)))
    .execute();
  const found = new Map<string, StoredShare | undefined>(rows.map((row) => [row.filter, fromShareRow(row)]));
  const missing = put.filter(({ filter }) => found.get(filter) === undefined);
  if (missing.length === 0) return;
  const known = await findKnown(at, sessionId, missing);
  const isNew = ({ id, filter }: StoredFilter): boolean => !found.has(filter) && !known.has(filter) && !known.has(id);
  const begun = missing.filter(isNew).map(({ id, filter, startsAfter: cursor }) => {
    return toShareRow({ share_id: id, group_id: groupId, filter, cursor, epoch: 0 });
  });
  for (const page of pagesOf(begun)) await transaction.insertInto("shares").values(page).execute();
  for (const one of missing) if (!isNew(one)) await beginLocked(at, one.filter);
}

/**
 * The filters that have other members, and the identifiers that a stored share or event of a share has. A filter with either has a share whose row is lost or
 * damaged.
 */
async function findKnown(
  { database, transaction, groupId }: InGroup,
  sessionId: SessionId,
  put: readonly StoredFilter[],
): Promise<ReadonlySet<string>> {
  const filters = put.map(({ filter }) => filter);
  const { rows: alone } = await findWithoutMember(database, { groupId, filters, besides: sessionId }).execute(
    transaction,
  );
  const withoutOthers = new Set(alone.map(({ filter }) => filter));
  const ids = database.column(put.map(({ id }) => id));
  const rows = await transaction
    .selectFrom("shares")
    .select("share_id as known")
    .where("share_id", "in", ids)
    .union(transaction.selectFrom("share_events").select("share_id as known").where("share_id", "in", ids))
    .execute();
  return new Set([...rows.map(({ known }) => known), ...filters.filter((filter) => !withoutOthers.has(filter))]);
}

/** Deletes the shares first. This waits for takes in progress, so the last statement also deletes the events of those takes. */
async function leaveLocked({ database, transaction, groupId }: InGroup, filters: readonly string[]): Promise<void> {
  const { rows } = await findWithoutMember(database, { groupId, filters }).execute(transaction);
  if (rows.length === 0) return;
  const ended = await transaction
    .deleteFrom("shares")
    .where("group_id", "=", groupId)
    .where("filter", "in", database.column(rows.map(({ filter }) => filter)))
    .returning("share_id")
    .execute();
  const ids = database.column(ended.map(({ share_id }) => share_id));
  await transaction.deleteFrom("share_events").where("share_id", "in", ids).execute();
}

/** Filters of a group; `besides` is the session that does not count as a member. */
interface FiltersInGroup {
  readonly groupId: string;
  readonly filters: readonly string[];
  readonly besides?: SessionId;
}

/** Those of a group's filters that no session has. Begins with the given filters: a popular share has thousands of members, and a group thousands of shares. */
export function findWithoutMember(
  { column }: Pick<SqlDatabase, "column">,
  { groupId, filters, besides }: FiltersInGroup,
) {
  const isOther = besides === undefined ? sql`` : sql`and session_id != ${besides}`;
  return sql<Pick<StoredFilter, "filter">>`with given (name) as ${column(filters)}
    select name as filter from given where (
      select subscription_id from session_subscriptions
      where filter = name and ${ofShare} ${isOther}
        and (select group_id from sessions where sessions.session_id = session_subscriptions.session_id) = ${groupId}
      limit 1) is null`;
}
