import { sql, type Transaction } from "kysely";
import type { GroupLease } from "../../../ports/coordinator.ts";
import type { LockMode, Schema } from "../schema.ts";

/** The channel of hints. Schemas of one database share it: a hint of another schema costs only an unneeded check. */
export const hintChannel = "stele";

/** Takes an advisory lock by name until the transaction ends. The server grants it in the order of the requests. */
export async function lockByName(
  transaction: Transaction<Schema>,
  name: string,
  mode: LockMode = "exclusive",
): Promise<void> {
  const key = sql`hashtextextended(${`stele ${name}`}, 0)`;
  const lock = mode === "exclusive" ? sql`pg_advisory_xact_lock(${key})` : sql`pg_advisory_xact_lock_shared(${key})`;
  await sql`select ${lock}`.execute(transaction);
}

/** As {@link lockByName}, exclusively, for several names, one after the other. */
export async function lockByNames(transaction: Transaction<Schema>, names: readonly string[]): Promise<void> {
  const key = sql`hashtextextended('stele ' || name, 0)`;
  await sql`select pg_advisory_xact_lock(${key}) from unnest(${names}::text[]) as name`.execute(transaction);
}

/** Takes an advisory lock in shared mode until the transaction ends. Returns false, without the lock, if another transaction holds or awaits it exclusively. */
export async function tryToShare(transaction: Transaction<Schema>, name: string): Promise<boolean> {
  const { rows } = await sql<{ readonly free: boolean }>`
    select pg_try_advisory_xact_lock_shared(hashtextextended(${`stele ${name}`}, 0)) as free`.execute(transaction);
  return rows[0]?.free === true;
}

/** Locks the lease's row, so that a node that takes the lease waits for this transaction. Returns false if the lease was released or is not the newest. */
export async function holdLease(transaction: Transaction<Schema>, lease: GroupLease): Promise<boolean> {
  const row = await transaction
    .selectFrom("group_leases")
    .select("epoch")
    .where("group_id", "=", lease.groupId)
    .where("node_id", "=", lease.nodeId)
    .where("epoch", "=", lease.epoch)
    .forShare()
    .executeTakeFirst();
  return row !== undefined;
}
