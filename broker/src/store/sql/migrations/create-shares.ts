import type { Kysely } from "kysely";
import type { Schema } from "../schema.ts";
import { ofShare } from "../sessions/share-rows.ts";

/** A migration. Earlier versions kept shares in memory; sessions become members again when they subscribe again. */
export async function createShares({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .createTable("shares")
    .addColumn("share_id", "text", (column) => column.primaryKey().notNull())
    .addColumn("group_id", "text", (column) => column.notNull())
    .addColumn("filter", "text", (column) => column.notNull())
    .addColumn("cursor", "bigint", (column) => column.notNull())
    .addColumn("epoch", "bigint", (column) => column.notNull())
    .addColumn("cursor_check", "bigint", (column) => column.notNull())
    .addColumn("checksum", "bigint", (column) => column.notNull())
    .addUniqueConstraint("shares_by_filter", ["group_id", "filter"])
    .execute();
  await schema
    .createTable("share_events")
    .addColumn("share_id", "text", (column) => column.notNull())
    .addColumn("position", "bigint", (column) => column.notNull())
    .addColumn("topic", "text", (column) => column.notNull())
    .addColumn("session_id", "text", (column) => column.notNull())
    .addColumn("session_epoch", "bigint", (column) => column.notNull())
    .addColumn("checksum", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("share_events_by_position", ["share_id", "position"])
    .execute();
  await schema.createIndex("share_events_by_session").on("share_events").column("session_id").execute();
  await schema
    .createIndex("session_subscriptions_of_shares")
    .on("session_subscriptions")
    .column("filter")
    .where(ofShare)
    .execute();
}
