import type { Kysely, Transaction } from "kysely";
import { maxOf, type Position, positionZero } from "../../../domain/position.ts";
import type { TopicFilter } from "../../../domain/topic-filter.ts";
import type { ShareId, StoredFilter } from "../../../ports/session-store.ts";
import type { StoredShare } from "../../../ports/share-store.ts";
import type { ShareTable } from "./share-tables.ts";
import type { Schema } from "../schema.ts";
import { fromFilterRow } from "./session-rows.ts";
import { fromShareEventRow, ofShare, toShareRow } from "./share-rows.ts";

/** Maximum number of rows of members, or of events, that are read to find an intact one. */
const rowsReadMax = 100;

/** A share as its members name it. */
export interface NamedShare {
  readonly groupId: string;
  readonly filter: TopicFilter;
}

/**
 * Begins a share for its stored members: a new share with its first member, or a share whose row is missing or damaged. The latter continues after the
 * newest event that is recorded as given: members lose no event, but may receive acknowledged events again. Undefined if it finds no intact member.
 * The caller holds the share's lock and the lock against rollbacks. `damaged` is the row under the share's name, if there is one.
 */
export async function beginShare(
  transaction: Transaction<Schema>,
  { groupId, filter }: NamedShare,
  damaged: ShareTable | undefined,
): Promise<StoredShare | undefined> {
  const member = await findFirstMember(transaction, { groupId, filter });
  if (member === undefined) return undefined;
  const id = damaged?.share_id ?? member.id;
  // A row whose group or filter is damaged can be found only by its identifier.
  const former = damaged ?? (await findById(transaction, id));
  if (former !== undefined) await transaction.deleteFrom("shares").where("share_id", "=", id).execute();
  const cursor = maxOf(member.startsAfter, await findNewestGiven(transaction, id));
  // The new epoch refuses takes that were planned with the former row.
  const epoch = former === undefined ? 0 : former.epoch + 1;
  const row = toShareRow({ share_id: id, group_id: groupId, filter, cursor, epoch });
  await transaction.insertInto("shares").values(row).execute();
  return { id: id as ShareId, epoch, cursor }; // Unchanged since it was stored.
}

/** The filters of a share's members. Not a join: SQLite would begin with all sessions of the group. */
export function findMembers(
  database: Kysely<Schema>,
  { groupId, filter }: { readonly groupId: string; readonly filter: string },
) {
  return database
    .selectFrom("session_subscriptions")
    .selectAll()
    .where("filter", "=", filter)
    .where(ofShare)
    .where(
      (builder) =>
        builder
          .selectFrom("sessions")
          .select("group_id")
          .whereRef("sessions.session_id", "=", "session_subscriptions.session_id"),
      "=",
      groupId,
    );
}

/** The filter with the lowest start among the members with intact rows. */
async function findFirstMember(transaction: Transaction<Schema>, share: NamedShare): Promise<StoredFilter | undefined> {
  const query = findMembers(transaction, share).orderBy("starts_after").limit(rowsReadMax);
  const rows = await query.execute();
  return rows.map((row) => fromFilterRow({ ...row })).find((found) => found !== undefined);
}

function findById(transaction: Transaction<Schema>, id: string): Promise<ShareTable | undefined> {
  return transaction.selectFrom("shares").selectAll().where("share_id", "=", id).executeTakeFirst();
}

async function findNewestGiven(transaction: Transaction<Schema>, id: string): Promise<Position> {
  const rows = await transaction
    .selectFrom("share_events")
    .selectAll()
    .where("share_id", "=", id)
    .orderBy("position", "desc")
    .limit(rowsReadMax)
    .execute();
  return rows.map(fromShareEventRow).find((place) => place !== undefined)?.position ?? positionZero;
}
