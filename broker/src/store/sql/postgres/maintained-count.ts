import { type Kysely, sql } from "kysely";
import type { Schema } from "../schema.ts";

/**
 * Drops the count that triggers of an earlier version maintain. Puts a view in its place, because nodes of that version read it until they are upgraded.
 */
export async function dropMaintainedCount(transaction: Kysely<Schema>): Promise<void> {
  const { rows } = await sql<{ readonly is_there: boolean }>`
    select to_regclass('subscription_counts') is not null as is_there`.execute(transaction);
  if (rows[0]?.is_there !== true) return;
  await sql`drop function count_subscriptions() cascade`.execute(transaction);
  await sql`drop table subscription_counts`.execute(transaction);
  await sql`create view subscription_counts as select 0 as slot, count(*) as count from subscriptions`.execute(
    transaction,
  );
}
