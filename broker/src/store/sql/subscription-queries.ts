import type { Kysely } from "kysely";
import { prepare } from "./prepared.ts";
import type { GroupTable, Schema, SqlDatabase, SubscriptionTable } from "./schema.ts";

export type SubscriptionQueries = ReturnType<typeof createSubscriptionQueries>;

type Change = Identified &
  Pick<SubscriptionTable, "url" | "receiver" | "interface_type" | "secret" | "state" | "checksum"> &
  Pick<SubscriptionTable, "failed_attempts" | "failed_ms" | "progress_check" | "principal">;
type Identified = Pick<SubscriptionTable, "id">;
type Key = Pick<SubscriptionTable, "id" | "epoch">;

/** Every query on subscriptions. */
export function createSubscriptionQueries(database: Kysely<Schema>) {
  return {
    find: prepare(({ id }: Identified) => database.selectFrom("subscriptions").selectAll().where("id", "=", id)),
    list: prepare(({ after, limit }: { readonly after: string; readonly limit: number }) =>
      database.selectFrom("subscriptions").selectAll().where("id", ">", after).orderBy("id").limit(limit),
    ),
    count: prepare(() => database.selectFrom("subscriptions").select(({ fn }) => fn.countAll<number>().as("count"))),
    countTo: prepare(({ receiver }: { readonly receiver: string }) =>
      database
        .selectFrom("subscriptions")
        .select(({ fn }) => fn.countAll<number>().as("count"))
        .where("receiver", "=", receiver),
    ),
    insert: prepare((row: SubscriptionTable) => {
      const { id, group_id, filter, interface_type, url, receiver, secret } = row;
      const { state, cursor, notified_count, notified_at, created_at, owner, epoch, wanted_by } = row;
      const { failed_attempts, failed_ms, progress_check, checksum, principal } = row;
      return database
        .insertInto("subscriptions")
        .values({
          id,
          group_id,
          filter,
          interface_type,
          url,
          receiver,
          secret,
          state,
          cursor,
          notified_count,
          notified_at,
          failed_attempts,
          failed_ms,
          created_at,
          owner,
          epoch,
          wanted_by,
          principal,
          progress_check,
          checksum,
        })
        .onConflict((conflict) => conflict.column("id").doNothing())
        .returning("id");
    }),
    findGeneration: prepare(({ group_id }: Pick<GroupTable, "group_id">) =>
      database.selectFrom("groups").select("generation").where("group_id", "=", group_id),
    ),
    update: prepare((columns: Change) => {
      const { id, url, receiver, interface_type, secret, state, checksum } = columns;
      const { failed_attempts, failed_ms, progress_check, principal } = columns;
      const progress = { failed_attempts, failed_ms, progress_check };
      return database
        .updateTable("subscriptions")
        .set({ url, receiver, interface_type, secret, state, checksum, principal, ...progress })
        .where("id", "=", id);
    }),
    delete: prepare(({ id, epoch }: Key) =>
      database.deleteFrom("subscriptions").where("id", "=", id).where("epoch", "=", epoch),
    ),
  };
}

/** The given ids that exist. */
export function findSubscriptions({ relaxed, column }: SqlDatabase, ids: readonly string[]) {
  return relaxed.selectFrom("subscriptions").selectAll().where("id", "in", column(ids));
}
