import { type Kysely, sql } from "kysely";
import type { Schema, SqlBackend } from "./schema.ts";

/** For quotas: what an owner or a tenant has, and a tenant's topics, are ranges of texts in the order of their bytes. */
export async function indexOwners(
  database: Kysely<Schema>,
  { orderedTextType }: Pick<SqlBackend, "orderedTextType">,
): Promise<void> {
  const order = sql.raw(orderedTextType.slice("text".length));
  await sql`create index subscriptions_by_principal on subscriptions (principal${order}, receiver)`.execute(database);
  await sql`create index sessions_by_principal on sessions (principal${order})`.execute(database);
  // Where that is the order of the index by name, it serves.
  if (orderedTextType === "text") return;
  await sql`create index topics_by_name_bytes on topics (group_id, name${order})`.execute(database);
}
