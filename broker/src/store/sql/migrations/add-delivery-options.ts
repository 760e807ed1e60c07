import type { Kysely } from "kysely";
import type { Schema } from "../schema.ts";

/** A migration. A row without options keeps its checksum. */
export async function addDeliveryOptions({ schema }: Kysely<Schema>): Promise<void> {
  await schema.alterTable("subscriptions").addColumn("delivery_options", "text").execute();
}
