import type { Kysely } from "kysely";
import { prepare } from "./prepared.ts";
import type { Schema, SubscriptionTable } from "./schema.ts";

export type SubscriptionQueries = ReturnType<typeof createSubscriptionQueries>;

type Change = Pick<SubscriptionTable, "id" | "url" | "interface_type" | "secret" | "state">;
type Advance = Pick<SubscriptionTable, "id" | "cursor" | "notified_count" | "notified_at">;
type Identified = Pick<SubscriptionTable, "id">;

/** Every query on subscriptions. */
export function createSubscriptionQueries(database: Kysely<Schema>) {
  return {
    find: prepare(({ id }: Identified) => database.selectFrom("subscriptions").selectAll().where("id", "=", id)),
    list: prepare(() => database.selectFrom("subscriptions").selectAll().orderBy("created_at").orderBy("id")),
    insert: prepare((row: SubscriptionTable) => {
      const { id, group_id, filter, interface_type, url, secret } = row;
      const { state, cursor, notified_count, notified_at, created_at } = row;
      return database
        .insertInto("subscriptions")
        .values({
          id,
          group_id,
          filter,
          interface_type,
          url,
          secret,
          state,
          cursor,
          notified_count,
          notified_at,
          created_at,
        })
        .onConflict((conflict) => conflict.column("id").doNothing());
    }),
    update: prepare(({ id, url, interface_type, secret, state }: Change) =>
      database.updateTable("subscriptions").set({ url, interface_type, secret, state }).where("id", "=", id),
    ),
    setState: prepare(({ id, state }: Pick<SubscriptionTable, "id" | "state">) =>
      database.updateTable("subscriptions").set({ state }).where("id", "=", id),
    ),
    delete: prepare(({ id }: Identified) => database.deleteFrom("subscriptions").where("id", "=", id)),
    advance: prepare(({ id, cursor, notified_count, notified_at }: Advance) =>
      database
        .updateTable("subscriptions")
        .set({ cursor, notified_count, notified_at })
        .where("id", "=", id)
        .where("cursor", "<", cursor),
    ),
  };
}
