import { type Kysely, sql } from "kysely";
import type { Schema, SqlBackend } from "../schema.ts";

/** A migration: indexes for quotas. The rows of an owner or tenant, and a tenant's topics, are ranges of names in the order of their bytes. */
export async function indexOwners(
  database: Kysely<Schema>,
  { orderedTextType }: Pick<SqlBackend, "orderedTextType">,
): Promise<void> {
  const order = sql.raw(orderedTextType.slice("text".length));
  await sql`create index subscriptions_by_principal on subscriptions (principal${order}, receiver)`.execute(database);
  await sql`create index sessions_by_principal on sessions (principal${order})`.execute(database);
  // If the database sorts text by bytes, the existing index by name is enough.
  if (orderedTextType === "text") return;
  await sql`create index topics_by_name_bytes on topics (group_id, name${order})`.execute(database);
}
