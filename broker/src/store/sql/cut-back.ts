import { sql, type Transaction } from "kysely";
import type { GroupId } from "../../domain/group-id.ts";
import { fromStored, type Position } from "../../domain/position.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import { type VanishedBatch, VanishedEvents } from "../../domain/vanished-events.ts";
import type { GroupLease } from "../../ports/coordinator.ts";
import { progressCheckSql } from "./row-checksums.ts";
import type { Schema, SqlDatabase, SubscriptionTable } from "./schema.ts";

export interface Cut {
  readonly groupId: GroupId;
  /** The position to which the index went back. */
  readonly end: Position;
  readonly vanished: readonly VanishedBatch[];
  readonly lease: GroupLease | undefined;
}

/** Rows that are looked at between two statements: a transaction that stands still for long is ended. */
const rowsAtOnce = 1_000;

type Row = Pick<SubscriptionTable, "id" | "filter" | "cursor">;

/** Sets cursors back that stand beyond the end, and gives the subscriptions of other nodes than the lease's a new epoch. */
export async function cutBack(transaction: Transaction<Schema>, cut: Cut, database: SqlDatabase): Promise<void> {
  const rows = await database.locking(findRows(transaction, cut)).execute();
  const { lease, groupId } = cut;
  const beyond = rows.filter(({ cursor }) => cursor > cut.end);
  const events = new VanishedEvents(cut.vanished);
  for (let start = 0; start < beyond.length; start += rowsAtOnce) {
    for (const [taken, ids] of idsByTaken(beyond.slice(start, start + rowsAtOnce), events)) {
      await setBack(transaction, { end: cut.end, taken }).where("id", "in", database.column(ids)).execute();
    }
  }
  if (lease === undefined) return;
  await transaction
    .updateTable("subscriptions")
    .set(({ eb }) => ({ epoch: eb("epoch", "+", 1) }))
    .where("group_id", "=", groupId)
    .where("owner", "is distinct from", lease.nodeId)
    .execute();
}

/**
 * By id, so that they are locked in the same order as everywhere. Where nodes share the database all of the group's are, before any is looked
 * at: whichever is left out could be taken over and moved beyond the end while the others are waited for.
 */
function findRows(transaction: Transaction<Schema>, { groupId, end, lease }: Cut) {
  const rows = transaction
    .selectFrom("subscriptions")
    .select(["id", "filter", "cursor"])
    .where("group_id", "=", groupId)
    .where(intactProgress)
    .orderBy("id");
  return lease === undefined ? rows.where("cursor", ">", end) : rows;
}

/** What is damaged stays damaged: set back, it would be taken for right. */
const intactProgress = sql<boolean>`progress_check = ${progressCheckSql(sql`cursor`, sql`notified_count`)}`;

function setBack(transaction: Transaction<Schema>, { end, taken }: { readonly end: Position; readonly taken: number }) {
  const count = sql<number>`case when notified_count > ${taken} then notified_count - ${taken} else 0 end`;
  return transaction.updateTable("subscriptions").set({
    cursor: end,
    notified_count: count,
    progress_check: progressCheckSql(sql`cast(${end} as bigint)`, sql`(${count})`),
  });
}

/** By how many of the events that they were given are gone; there are far fewer such numbers than subscriptions. */
function idsByTaken(rows: readonly Row[], events: VanishedEvents): ReadonlyMap<number, readonly string[]> {
  const ids = new Map<number, string[]>();
  for (const { id, filter, cursor } of rows) {
    const taken = events.countUpTo(filter as TopicFilter, fromStored(cursor)); // As it was given.
    const known = ids.get(taken);
    if (known === undefined) ids.set(taken, [id]);
    else known.push(id);
  }
  return ids;
}
