import { type Kysely, type RawBuilder, sql, type Transaction } from "kysely";
import type { Deliverer } from "../../../../domain/balance.ts";
import type { GroupId } from "../../../../domain/group-id.ts";
import type { ClusterNode, JoiningNode, NodeId } from "../../../../domain/node.ts";
import type { Departure } from "../../../../ports/coordinator.ts";
import type { NodeTable } from "../../coordination-tables.ts";
import { rowsAtOnceMax } from "../../pages-by-id.ts";
import type { Schema } from "../../schema.ts";
import { detachWhere } from "../../sessions/session-detaching.ts";
import { sendHints } from "./hint-text.ts";
import { membershipMsMax } from "./limits.ts";

/** The time of the database's clock, as Unix time in milliseconds. */
const now = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;

/** The latest end that a membership may have. */
const latestEnd = sql<number>`${now} + ${membershipMsMax}::bigint`;

/** The members of the cluster. */
export class Members {
  readonly #queries: Kysely<Schema>;

  constructor(queries: Kysely<Schema>) {
    this.#queries = queries;
  }

  /** Overwrites the row of an expired or replaced member with the same address, so that the former identifier is not a member any more. */
  async join({ id, address, replaces = [] }: JoiningNode, lastsMs: number): Promise<"joined" | "taken"> {
    await shorten(this.#queries);
    return this.#queries.transaction().execute(async (transaction) => {
      const others = sql`address = ${address} and node_id <> ${id} and node_id <> all(${replaces}::text[])`;
      await remove(transaction, "expired", sql`${others} and expires_at <= ${now}`);
      const joined = await sql`
        insert into nodes (node_id, address, joined_at, expires_at, groups)
        values (${id}, ${address}, ${now}, ${now} + ${lastsMs}::bigint, '[]')
        on conflict (address) do update
          set node_id = excluded.node_id, joined_at = excluded.joined_at, expires_at = excluded.expires_at, groups = excluded.groups
          where nodes.expires_at <= ${now} or nodes.node_id = excluded.node_id or nodes.node_id = any(${replaces}::text[])
        returning node_id`.execute(transaction);
      if (joined.rows.length === 0) return "taken";
      await sendHints(transaction, [{ kind: "nodes" }]);
      return "joined";
    });
  }

  async renew(
    nodeId: NodeId,
    { lastsMs, groups }: { readonly lastsMs: number; readonly groups: readonly GroupId[] },
  ): Promise<boolean> {
    const renewed = await sql`
      update nodes set expires_at = ${now} + ${lastsMs}::bigint, groups = ${JSON.stringify(groups)}
      where node_id = ${nodeId} and expires_at > ${now}`.execute(this.#queries);
    return renewed.numAffectedRows === 1n;
  }

  async leave(nodeId: NodeId): Promise<void> {
    await this.#queries.transaction().execute(async (transaction) => {
      const hasLeft = await remove(transaction, "left", sql`node_id = ${nodeId}`);
      if (hasLeft) await sendHints(transaction, [{ kind: "nodes" }]);
    });
  }

  async list(): Promise<readonly ClusterNode[]> {
    const rows = await this.#queries.selectFrom("nodes").selectAll().where("expires_at", ">", now).execute();
    return rows.map(toNode).toSorted((left, right) => (left.address < right.address ? -1 : 1));
  }
}

/**
 * Removes expired members; returns whether it removed any. Run it before a transaction that calls {@link findPresent}, not within it: that
 * transaction then need not wait for renewals in progress. A node without a row never becomes a member again under the same identifier.
 */
export async function removeExpired(queries: Kysely<Schema>): Promise<boolean> {
  const due = await sql`select from nodes where expires_at <= ${now} or expires_at > ${latestEnd} limit 1`.execute(
    queries,
  );
  if (due.rows.length === 0) return false;
  await shorten(queries);
  const free = sql`select node_id from nodes where expires_at <= ${now} for update skip locked`;
  return queries
    .transaction()
    .execute(async (transaction) => remove(transaction, "expired", sql`node_id in (${free})`));
}

/**
 * Shortens memberships that are longer than any may be, because the database's clock was set back. A dead node would otherwise stay a member until the clock
 * has caught up; a live node renews in time. Skips rows that other transactions have locked: these renew or shorten the rows, and must not delay this call.
 */
async function shorten(queries: Kysely<Schema>): Promise<void> {
  const free = sql`select node_id from nodes where expires_at > ${latestEnd} for update skip locked`;
  await sql`update nodes set expires_at = ${latestEnd} where node_id = any(array(${free}))`.execute(queries);
}

/** Removes members, and sends a hint for each with the number of its subscriptions and groups. Returns whether there were any. */
async function remove(
  transaction: Transaction<Schema>,
  how: Departure["how"],
  which: RawBuilder<unknown>,
): Promise<boolean> {
  const { rows: removed } = await sql<Pick<NodeTable, "node_id" | "address">>`
    delete from nodes where ${which} returning node_id, address`.execute(transaction);
  if (removed.length === 0) return false;
  const ids = removed.map(({ node_id }) => node_id);
  const { rows: held } = await sql<Record<"node_id" | "subscriptions" | "groups", string>>`
    select node_id,
      (select count(*) from subscriptions where owner = gone.node_id) as subscriptions,
      (select count(*) from group_leases as leases where leases.node_id = gone.node_id) as groups
    from unnest(${ids}::text[]) as gone (node_id)`.execute(transaction);
  await detachSome(transaction, ids);
  const counts = new Map(held.map((row) => [row.node_id, row]));
  const hints = removed.map(({ node_id, address }) => ({
    kind: "gone" as const,
    how,
    nodeId: node_id as NodeId, // Unchanged since it joined.
    address,
    subscriptions: Number(counts.get(node_id)?.subscriptions ?? 0),
    groups: Number(counts.get(node_id)?.groups ?? 0),
  }));
  await sendHints(transaction, hints);
  return true;
}

/**
 * Detaches sessions of removed members: up to a thousand in each group, and none that a rollback has locked. A later sweep detaches the others, so that the
 * takeover of the members' other work does not wait for all of their sessions.
 */
async function detachSome(transaction: Transaction<Schema>, ids: readonly string[]): Promise<void> {
  const { rows } = await sql<{ readonly group_id: string }>`
    select distinct group_id from sessions where owner = any(${ids}::text[])`.execute(transaction);
  for (const { group_id } of rows) {
    const free = sql`select session_id from sessions where group_id = ${group_id} and owner = any(${ids}::text[])
      limit ${rowsAtOnceMax} for update skip locked`;
    // An array, not `in`: some plans of `in` read the subquery again for each session, and each time it finds others.
    await detachWhere(transaction, group_id, sql`session_id = any(array(${free}))`);
  }
}

/**
 * Those of the given nodes that have a row, even if the row has expired since {@link removeExpired}. First lock the rows from which you read the identifiers,
 * in the same transaction: then this also finds a node that has just become an owner.
 */
export async function findPresent(
  transaction: Kysely<Schema>,
  ids: readonly (string | null)[],
): Promise<ReadonlyMap<string, ClusterNode>> {
  const rows = await sql<NodeTable>`select * from nodes where node_id = any(${ids}::text[])`.execute(transaction);
  return new Map(rows.rows.map((row) => [row.node_id, toNode(row)]));
}

/** All nodes that have a row, and the groups that each delivers. */
export async function listDeliverers(transaction: Kysely<Schema>): Promise<readonly Deliverer[]> {
  const rows = await transaction.selectFrom("nodes").select(["node_id", "groups"]).execute();
  // Written only by `join` and `renew`.
  return rows.map((row) => ({ id: row.node_id as NodeId, groups: JSON.parse(row.groups) as readonly GroupId[] }));
}

/** Whether a member's row has not expired. */
export function isLive(expiresAt: RawBuilder<unknown>): RawBuilder<boolean> {
  return sql`${expiresAt} > ${now}`;
}

function toNode({ node_id, address, joined_at }: NodeTable): ClusterNode {
  return { id: node_id as NodeId, address, joinedAt: joined_at };
}
