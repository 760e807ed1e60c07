import type { Kysely } from "kysely";
import { isFailing, isHeld } from "../subscriptions/subscription-queries.ts";
import type { Schema } from "../schema.ts";

/** A migration. Rows of earlier versions keep their checks, to which the new columns add 0. */
export async function addRetryTimes({ schema }: Kysely<Schema>): Promise<void> {
  for (const name of ["failing_since", "retry_at"]) {
    await schema
      .alterTable("subscriptions")
      .addColumn(name, "bigint", (column) => column.notNull().defaultTo(0))
      .execute();
  }
  await schema
    .createIndex("subscriptions_held")
    .on("subscriptions")
    .columns(["group_id", "state"])
    .where(isHeld)
    .execute();
  await schema
    .createIndex("subscriptions_failing")
    .on("subscriptions")
    .column("failing_since")
    .where(isFailing)
    .execute();
}
