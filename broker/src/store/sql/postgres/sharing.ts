import { sql, type Transaction } from "kysely";
import type { GroupLease, Hint } from "../../../ports/coordinator.ts";
import type { LockMode, Schema } from "../schema.ts";

/** Where nodes listen. Schemas of one database share it: a hint that is another's costs a look. */
export const hintChannel = "stele";

/** A lock of the server's, by name; those that wait for it have it in the order in which they came. */
export async function lockByName(
  transaction: Transaction<Schema>,
  name: string,
  mode: LockMode = "exclusive",
): Promise<void> {
  const key = sql`hashtextextended(${`stele ${name}`}, 0)`;
  const lock = mode === "exclusive" ? sql`pg_advisory_xact_lock(${key})` : sql`pg_advisory_xact_lock_shared(${key})`;
  await sql`select ${lock}`.execute(transaction);
}

/** Whoever takes the lease changes its row, and so waits for this transaction. */
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

export async function notify(transaction: Transaction<Schema>, hint: Hint): Promise<void> {
  await sql`select pg_notify(${hintChannel}, ${JSON.stringify(hint)})`.execute(transaction);
}
