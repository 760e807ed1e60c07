import { sql, type Transaction } from "kysely";
import type { GroupId } from "../../../domain/group-id.ts";
import { fromStored, type Position } from "../../../domain/position.ts";
import type { TopicFilter } from "../../../domain/topic-filter.ts";
import { byFilter, type VanishedEvents } from "../../../domain/vanished-events.ts";
import type { GroupLease } from "../../../ports/coordinator.ts";
import { failureCheckSql, nextEpochCheckSql, progressCheckSql } from "../row-checksums.ts";
import { pagesById, rowsAtOnceMax } from "../pages-by-id.ts";
import type { Schema, SqlDatabase, SubscriptionTable } from "../schema.ts";
import { cutBackLetters } from "../subscriptions/sql-dead-letters.ts";

export interface Cut {
  readonly groupId: GroupId;
  /** The position to which the index was rolled back. */
  readonly end: Position;
  readonly vanished: VanishedEvents;
  readonly lease: GroupLease | undefined;
}

/** Whether an event after the cursor has failed. */
const isFailing = sql<boolean>`(failed_attempts > 0 or failed_ms > 0 or failing_since > 0)`;

/** Whether the row is intact. A damaged row must stay as it is: with a new check it would look intact. */
const isIntact = sql<boolean>`progress_check = ${progressCheckSql(sql`cursor`, sql`notified_count`)}`;

type Row = Pick<SubscriptionTable, "id" | "filter" | "cursor">;

/**
 * Moves cursors beyond `cut.end` back to it, and forgets failures of events beyond it, which would count as failed attempts of the next event. Deletes the dead
 * letters beyond it. If there is a lease, gives every subscription that the lease holder does not own a new epoch.
 */
export async function cutBack(transaction: Transaction<Schema>, cut: Cut, database: SqlDatabase): Promise<void> {
  const { lease, groupId } = cut;
  for await (const rows of pagesById((after) => database.locking(findRows(transaction, groupId, after)).execute())) {
    const isBeyond = ({ cursor, is_failing }: (typeof rows)[number]): boolean =>
      cursor > cut.end || (cursor === cut.end && is_failing);
    const beyond = rows.filter((row) => row.is_intact && isBeyond(row));
    for (const [taken, ids] of idsByTaken(byFilter(beyond), cut.vanished)) {
      await setBack(transaction, { end: cut.end, taken }).where("id", "in", database.column(ids)).execute();
    }
    const ids = database.column(rows.map(({ id }) => id));
    await cutBackLetters(transaction, { ids, end: cut.end });
  }
  if (lease === undefined) return;
  await transaction
    .updateTable("subscriptions")
    .set(({ eb }) => ({ epoch: eb("epoch", "+", 1), progress_check: eb("progress_check", "+", nextEpochCheckSql()) }))
    .where("group_id", "=", groupId)
    .where("owner", "is distinct from", lease.nodeId)
    .execute();
}

/**
 * One page of rows after an id, including rows whose cursor is not beyond the end: a statement that looked only for the others could read all rows. Sorts by
 * id, so that all transactions lock rows in the same order. If nodes share the database, the pages lock all rows of the group: another node could take over an
 * unlocked subscription and move it beyond the end while this transaction waits for other locks.
 */
function findRows(transaction: Transaction<Schema>, groupId: GroupId, after: string) {
  return transaction
    .selectFrom("subscriptions")
    .select(["id", "filter", "cursor", isFailing.as("is_failing"), isIntact.as("is_intact")])
    .where("group_id", "=", groupId)
    .where("id", ">", after)
    .orderBy("id")
    .limit(rowsAtOnceMax);
}

function setBack(transaction: Transaction<Schema>, { end, taken }: { readonly end: Position; readonly taken: number }) {
  const count = sql<number>`case when notified_count > ${taken} then notified_count - ${taken} else 0 end`;
  const check = progressCheckSql(sql`cast(${end} as bigint)`, sql`(${count})`);
  return transaction.updateTable("subscriptions").set({
    cursor: end,
    notified_count: count,
    failed_attempts: 0, // A pause that the receiver requested (retry_at) stays.
    failed_ms: 0,
    failing_since: 0,
    progress_check: sql<number>`${check} - (${failureCheckSql})`,
  });
}

/** Groups subscriptions by the number of their vanished events, so that one statement changes many rows. */
function idsByTaken(rows: readonly Row[], events: VanishedEvents): ReadonlyMap<number, readonly string[]> {
  const ids = new Map<number, string[]>();
  for (const { id, filter, cursor } of rows) {
    const taken = events.countUpTo(filter as TopicFilter, fromStored(cursor)); // Unchanged since it was stored.
    const known = ids.get(taken);
    if (known === undefined) ids.set(taken, [id]);
    else known.push(id);
  }
  return ids;
}
