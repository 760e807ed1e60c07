import type { Kysely } from "kysely";
import type { ApiKeySchema } from "./sql-key-schema.ts";

/** Creates a table of one row, the number of changes so far. */
export async function createRevisions(
  database: Kysely<ApiKeySchema>,
  table: "api_key_revisions" | "access_role_revisions",
): Promise<void> {
  await database.schema
    .createTable(table)
    .ifNotExists()
    .addColumn("only", "integer", (column) => column.primaryKey().notNull())
    .addColumn("revision", "bigint", (column) => column.notNull())
    .execute();
  await database
    .insertInto(table)
    .values({ only: 1, revision: 0 })
    .onConflict((conflict) => conflict.column("only").doNothing())
    .execute();
}
