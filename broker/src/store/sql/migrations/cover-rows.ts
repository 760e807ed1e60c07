import { type Kysely, sql } from "kysely";
import { progressPrime, withChecksum } from "../row-checksums.ts";
import type { Schema } from "../schema.ts";

const prime = sql.lit(progressPrime);

/**
 * A migration: extends the checks of existing rows to epochs, times, secrets, skipped entries, vanished batches and the set of a session's filters.
 * Drops the column `will_due_at`, which other columns determine.
 */
export async function coverRows(database: Kysely<Schema>): Promise<void> {
  await coverSessions(database);
  await coverTimes(database);
  await database
    .updateTable("shares")
    .set({ cursor_check: sql<number>`cursor_check + (epoch % ${prime}) * 3` })
    .execute();
  await coverSubscriptions(database);
  await coverIndexRows(database);
}

async function coverSessions(database: Kysely<Schema>): Promise<void> {
  await database.schema.alterTable("sessions").dropColumn("will_due_at").execute();
  await database.schema
    .alterTable("sessions")
    .addColumn("filters_check", "bigint", (column) => column.notNull().defaultTo(0))
    .execute();
  const filters = sql<number>`coalesce((
    select cast(sum(filters.checksum - (filters.starts_after % ${prime}) * 3) as bigint)
    from session_subscriptions as filters where filters.session_id = sessions.session_id), 0)`;
  await database
    .updateTable("sessions")
    .set({
      state_check: sql<number>`state_check + (epoch % ${prime}) * 7
        + case when detached_at is null then 0 else (detached_at % ${prime} + 1) * 11 end`,
      filters_check: filters,
    })
    .execute();
}

async function coverTimes(database: Kysely<Schema>): Promise<void> {
  await database.schema
    .alterTable("session_times")
    .addColumn("ms_check", "bigint", (column) => column.notNull().defaultTo(0))
    .execute();
  await database.updateTable("session_times").set({ ms_check: sql<number>`3 * ms` }).execute();
}

async function coverSubscriptions(database: Kysely<Schema>): Promise<void> {
  await database
    .updateTable("subscriptions")
    .set({ progress_check: sql<number>`progress_check + (epoch % ${prime}) * 17` })
    .execute();
  for (const row of await database.selectFrom("subscriptions").selectAll().where("secret", "is not", null).execute()) {
    const { checksum } = withChecksum("subscriptions", row);
    await database.updateTable("subscriptions").set({ checksum }).where("id", "=", row.id).execute();
  }
}

/** Changes one row at a time: both tables have a bounded number of rows. */
async function coverIndexRows(database: Kysely<Schema>): Promise<void> {
  for (const table of ["vanished", "skipped_entries"] as const) {
    await database.schema
      .alterTable(table)
      .addColumn("checksum", "bigint", (column) => column.notNull().defaultTo(0))
      .execute();
  }
  for (const row of await database.selectFrom("vanished").selectAll().execute()) {
    const { checksum } = withChecksum("vanished", row);
    await database.updateTable("vanished").set({ checksum }).where("vanished_id", "=", row.vanished_id).execute();
  }
  for (const row of await database.selectFrom("skipped_entries").selectAll().execute()) {
    const { checksum } = withChecksum("skipped_entries", row);
    await database
      .updateTable("skipped_entries")
      .set({ checksum })
      .where("group_id", "=", row.group_id)
      .where("block_number", "=", row.block_number)
      .where("log_index", "=", row.log_index)
      .execute();
  }
}
