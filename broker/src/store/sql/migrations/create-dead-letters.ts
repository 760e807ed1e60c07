import type { Kysely } from "kysely";
import type { Schema } from "../schema.ts";

/** A migration: creates the table of dead letters. */
export async function createDeadLetters({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .createTable("dead_letters")
    .addColumn("subscription_id", "text", (column) => column.notNull())
    .addColumn("position", "bigint", (column) => column.notNull())
    .addColumn("event_id", "text", (column) => column.notNull())
    .addColumn("topic", "text", (column) => column.notNull())
    .addColumn("attempts", "bigint", (column) => column.notNull())
    .addColumn("reason", "text", (column) => column.notNull())
    .addColumn("failed_at", "bigint", (column) => column.notNull())
    .addColumn("checksum", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("dead_letters_by_position", ["subscription_id", "position"])
    .execute();
}
