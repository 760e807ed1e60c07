import type { Transaction } from "kysely";
import { maxOf, type Position, positionZero } from "../../domain/position.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import type { ShareId, StoredFilter } from "../../ports/session-store.ts";
import type { StoredShare } from "../../ports/share-store.ts";
import type { Schema, ShareTable } from "./schema.ts";
import { fromFilterRow } from "./session-rows.ts";
import { fromShareEventRow, ofShare, toShareRow } from "./share-rows.ts";

/** Rows of members, or of events, that are read to find one that is intact. */
const rowsReadMax = 100;

/** A share as its members name it. */
export interface NamedShare {
  readonly groupId: string;
  readonly filter: TopicFilter;
}

/**
 * Begins a share for the members that the store has: a new one with its first member, or one that has lost its row. That one begins after the newest
 * event that is known to have been given, so that members lose nothing; they may get again what they acknowledged. Undefined where there is no
 * member. The caller holds the lock of the share, and the one against rollbacks; `damaged` is the row under the share's name, if there is one.
 */
export async function beginShare(
  transaction: Transaction<Schema>,
  { groupId, filter }: NamedShare,
  damaged: ShareTable | undefined,
): Promise<StoredShare | undefined> {
  const member = await findFirstMember(transaction, { groupId, filter });
  if (member === undefined) return undefined;
  const id = damaged?.share_id ?? member.id;
  // One whose group or filter is damaged has no other name than its identifier.
  const former = damaged ?? (await findById(transaction, id));
  if (former !== undefined) await transaction.deleteFrom("shares").where("share_id", "=", id).execute();
  const cursor = maxOf(member.startsAfter, await findNewestGiven(transaction, id));
  // Takes that were planned with the former row are refused.
  const epoch = former === undefined ? 0 : former.epoch + 1;
  const row = toShareRow({ share_id: id, group_id: groupId, filter, cursor, epoch });
  await transaction.insertInto("shares").values(row).execute();
  return { id: id as ShareId, epoch, cursor }; // As it was given.
}

/** Of the members whose rows are intact, the filter that begins first. */
async function findFirstMember(
  transaction: Transaction<Schema>,
  { groupId, filter }: NamedShare,
): Promise<StoredFilter | undefined> {
  const rows = await transaction
    .selectFrom("session_subscriptions")
    .innerJoin("sessions", "sessions.session_id", "session_subscriptions.session_id")
    .selectAll("session_subscriptions")
    .where("filter", "=", filter)
    .where(ofShare)
    .where("group_id", "=", groupId)
    .orderBy("starts_after")
    .limit(rowsReadMax)
    .execute();
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
