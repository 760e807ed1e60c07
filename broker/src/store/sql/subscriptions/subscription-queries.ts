import { type Kysely, sql } from "kysely";
import type { SubscriptionSearch } from "../../../ports/subscription-search.ts";
import { prepare } from "../prepared.ts";
import { noEpoch } from "../rows.ts";
import type { GroupTable, Schema, SqlDatabase, SubscriptionTable } from "../schema.ts";

export type SubscriptionQueries = ReturnType<typeof createSubscriptionQueries>;

type Change = Identified &
  Pick<SubscriptionTable, "filter" | "cursor" | "epoch"> &
  Pick<SubscriptionTable, "url" | "receiver" | "interface_type" | "secret" | "delivery_options"> &
  Pick<SubscriptionTable, "state" | "checksum"> &
  Pick<
    SubscriptionTable,
    "failed_attempts" | "failed_ms" | "failing_since" | "retry_at" | "progress_check" | "principal"
  >;
type Identified = Pick<SubscriptionTable, "id">;
type Key = Pick<SubscriptionTable, "id" | "epoch">;

/** The conditions of partial indexes, exactly as the migrations define them. */
export const isHeld = sql<boolean>`state <> 'active'`;
export const isFailing = sql<boolean>`failing_since > 0`;

/** The epoch that reads of a row return: {@link noEpoch} for one that is damaged. */
const storedEpoch = sql`case when epoch between 0 and ${sql.lit(Number.MAX_SAFE_INTEGER)} then epoch else ${sql.lit(noEpoch)} end`;

/** Prepared queries on subscriptions. */
export function createSubscriptionQueries(database: Kysely<Schema>) {
  return {
    find: prepare(({ id }: Identified) => database.selectFrom("subscriptions").selectAll().where("id", "=", id)),
    list: prepare(({ after, limit }: { readonly after: string; readonly limit: number }) =>
      database.selectFrom("subscriptions").selectAll().where("id", ">", after).orderBy("id").limit(limit),
    ),
    count: prepare(() => database.selectFrom("subscriptions").select(({ fn }) => fn.countAll<number>().as("count"))),
    countHeld: prepare(() =>
      database
        .selectFrom("subscriptions")
        .select(["group_id", "state", ({ fn }) => fn.countAll<number>().as("count")])
        .where(isHeld)
        .groupBy(["group_id", "state"]),
    ),
    countTo: prepare(({ receiver }: { readonly receiver: string }) =>
      database
        .selectFrom("subscriptions")
        .select(({ fn }) => fn.countAll<number>().as("count"))
        .where("receiver", "=", receiver),
    ),
    insert: prepare((row: SubscriptionTable) => {
      const { id, group_id, filter, interface_type, url, receiver, secret } = row;
      const { state, cursor, notified_count, notified_at, created_at, owner, epoch, wanted_by } = row;
      const { failed_attempts, failed_ms, failing_since, retry_at, progress_check, checksum, principal } = row;
      const { delivery_options } = row;
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
          failing_since,
          retry_at,
          created_at,
          owner,
          epoch,
          wanted_by,
          principal,
          delivery_options,
          progress_check,
          checksum,
        })
        .onConflict((conflict) => conflict.column("id").doNothing())
        .returning("id");
    }),
    findGeneration: prepare(({ group_id }: Pick<GroupTable, "group_id">) =>
      database.selectFrom("groups").select("generation").where("group_id", "=", group_id),
    ),
    update: prepareUpdate(database),
    delete: prepare(({ id, epoch }: Key) =>
      database.deleteFrom("subscriptions").where("id", "=", id).where(storedEpoch, "=", epoch),
    ),
  };
}

function prepareUpdate(database: Kysely<Schema>) {
  return prepare((columns: Change) => {
    const { id, filter, url, receiver, interface_type, secret, delivery_options, state, cursor, epoch } = columns;
    const { checksum, principal, progress_check, failed_attempts, failed_ms, failing_since, retry_at } = columns;
    return database
      .updateTable("subscriptions")
      .set({ filter, url, receiver, interface_type, secret, delivery_options, state, cursor, epoch })
      .set({ checksum, principal, progress_check, failed_attempts, failed_ms, failing_since, retry_at })
      .where("id", "=", id);
  });
}

/** The subscriptions with the given ids, as far as they exist. */
export function findSubscriptions({ relaxed, column }: SqlDatabase, ids: readonly string[]) {
  return relaxed.selectFrom("subscriptions").selectAll().where("id", "in", column(ids));
}

/** The matching subscriptions after an identifier. The empty text sorts before every identifier. */
export function searchSubscriptions(
  { relaxed }: SqlDatabase,
  search: SubscriptionSearch,
  { after = "", limit }: { readonly after: string | undefined; readonly limit: number },
) {
  const { prefix, receivers, hosts, failingBefore } = search;
  const isAny = Object.values(search).every((value) => value === undefined);
  const key = isAny ? sql<string>`id` : plainId;
  let query = relaxed.selectFrom("subscriptions").selectAll().where(key, ">", after);
  for (const [column, value] of equalities(search)) if (value !== undefined) query = query.where(column, "=", value);
  if (receivers !== undefined) query = query.where("receiver", "in", receivers);
  if (hosts !== undefined) query = query.where((where) => where.or(hosts.map(isAtHost)));
  if (prefix !== undefined) query = query.where(sql`substr(filter, 1, ${prefix.length})`, "=", prefix);
  if (failingBefore !== undefined) query = query.where(isFailing).where("failing_since", "<", failingBefore);
  if (search.state !== undefined && search.state !== "active") query = query.where(isHeld);
  return query.orderBy(key).limit(limit);
}

/** Whether the receiver is at a host, at any port or without one. */
function isAtHost(host: string) {
  const start = `${host}:`;
  return sql<boolean>`(receiver = ${host} or substr(receiver, 1, ${start.length}) = ${start})`;
}

/** The identifier in a form that keeps databases from using its index: if 100,000 rows do not match, the index takes a second, a scan 30 ms. */
const plainId = sql<string>`id || ''`;

function equalities({ groupId, state, format, filter, principal, owner }: SubscriptionSearch) {
  return [
    ["group_id", groupId],
    ["state", state],
    ["interface_type", format],
    ["filter", filter],
    ["principal", principal],
    ["owner", owner],
  ] as const;
}
