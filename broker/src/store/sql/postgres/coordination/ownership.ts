import { type Kysely, type RawBuilder, sql, type Transaction } from "kysely";
import type { NodeId } from "../../../../domain/node.ts";
import type { SubscriptionId } from "../../../../domain/subscription.ts";
import { type Claim, type OwnedSubscription, movesMax, type SubscriptionKey } from "../../../../ports/coordinator.ts";
import { hintsOfMoved, type Moved } from "../../../hints.ts";
import { membershipEnded } from "../../../membership-ended.ts";
import { nextEpochCheckSql, progressCheck } from "../../row-checksums.ts";
import { fromSubscriptionRow } from "../../rows.ts";
import type { Schema, SubscriptionTable } from "../../schema.ts";
import { StoreError } from "../../store-error.ts";
import { sendHints } from "./hint-text.ts";
import { findPresent, isLive, removeExpired } from "./members.ts";

/** The owner of each subscription. */
export class Ownership {
  readonly #queries: Kysely<Schema>;

  constructor(queries: Kysely<Schema>) {
    this.#queries = queries;
  }

  async list(nodeId: NodeId): Promise<readonly OwnedSubscription[]> {
    const rows = await this.#queries
      .selectFrom("subscriptions")
      .leftJoin("nodes as wanter", (join) =>
        join.onRef("wanter.node_id", "=", "wanted_by").on(isLive(sql.ref("wanter.expires_at"))),
      )
      .select(["id", "epoch", "group_id", "wanter.node_id as wanted_by"])
      .where("owner", "=", nodeId)
      .where("state", "=", "active")
      .orderBy(sql`id collate "C"`)
      .execute();
    return rows.map(toOwned);
  }

  /** A rollback may lock the row for long. A claim at that time returns `asked`, so that the caller tries again, as if another node had to hand over. */
  async claim(id: SubscriptionId, nodeId: NodeId): Promise<Claim> {
    await removeExpired(this.#queries);
    try {
      return await this.#claim(id, nodeId);
    } catch (error) {
      if (error instanceof StoreError && error.fault === "lock-timeout") return { status: "asked", owner: undefined };
      throw error;
    }
  }

  async handOver(keys: readonly SubscriptionKey[]): Promise<void> {
    await this.#moveAll(keys, sql`exists ${liveWanter}`);
  }

  async release(keys: readonly SubscriptionKey[]): Promise<void> {
    await this.#moveAll(keys, sql`true`);
  }

  async #moveAll(keys: readonly SubscriptionKey[], condition: RawBuilder<unknown>): Promise<void> {
    const ordered = keys.toSorted((left, right) => (left.id < right.id ? -1 : 1));
    if (ordered.length === 0) return;
    await this.#queries.transaction().execute(async (transaction) => {
      const moved: Moved[] = [];
      for (let start = 0; start < ordered.length; start += movesMax) {
        moved.push(...(await move(transaction, ordered.slice(start, start + movesMax), condition)));
      }
      await sendHints(transaction, hintsOfMoved(moved));
    });
  }

  async #claim(id: SubscriptionId, nodeId: NodeId): Promise<Claim> {
    return this.#queries.transaction().execute(async (transaction) => {
      const query = transaction.selectFrom("subscriptions").selectAll().where("id", "=", id);
      const row = await query.forNoKeyUpdate().executeTakeFirst();
      const present = await findPresent(transaction, [nodeId, row?.owner ?? null, row?.wanted_by ?? null]);
      if (!present.has(nodeId)) throw membershipEnded();
      if (row === undefined) return { status: "unknown" };
      if (row.owner === nodeId) return { status: "owned", subscription: fromSubscriptionRow(row) };
      if (row.owner === null || !present.has(row.owner) || row.state !== "active") {
        return { status: "owned", subscription: fromSubscriptionRow(await give(transaction, row, nodeId)) };
      }
      if (row.wanted_by === null || !present.has(row.wanted_by)) await askFor(transaction, id, nodeId);
      return { status: "asked", owner: row.owner as NodeId };
    });
  }
}

async function give(transaction: Transaction<Schema>, row: SubscriptionTable, owner: NodeId) {
  const step = progressCheck({ ...row, epoch: row.epoch + 1 }) - progressCheck(row);
  const change = { owner, epoch: row.epoch + 1, wanted_by: null, progress_check: row.progress_check + step };
  await transaction.updateTable("subscriptions").set(change).where("id", "=", row.id).execute();
  await sendHints(transaction, [{ kind: "subscription", id: row.id as SubscriptionId }]);
  return { ...row, ...change };
}

async function askFor(transaction: Transaction<Schema>, id: SubscriptionId, nodeId: NodeId): Promise<void> {
  await transaction.updateTable("subscriptions").set({ wanted_by: nodeId }).where("id", "=", id).execute();
  await sendHints(transaction, [{ kind: "subscription", id }]);
}

/** The live node that claims a row. */
const liveWanter = sql`(select from nodes where node_id = kept.wanted_by and ${isLive(sql.ref("nodes.expires_at"))})`;

/**
 * Gives the rows that meet `condition` to the nodes that claim them. If the node that claims a row is not live, the row loses its owner. Locks the rows by
 * id, as all transactions do, before it reads the claims: a node that claimed and left while this waited gets nothing.
 */
async function move(
  transaction: Transaction<Schema>,
  keys: readonly SubscriptionKey[],
  condition: RawBuilder<unknown>,
): Promise<readonly Moved[]> {
  const ids = keys.map(({ id }) => id);
  const epochs = keys.map(({ epoch }) => epoch);
  const moved = await sql<{ readonly id: SubscriptionId; readonly owner: NodeId | null }>`
    with given as materialized (
      select * from unnest(${ids}::text[], ${epochs}::bigint[]) as given (id, epoch)
    ),
    held as materialized (
      select kept.id from subscriptions as kept join given on given.id = kept.id and given.epoch = kept.epoch
      order by kept.id for no key update of kept
    )
    update subscriptions as kept
    set owner = case when exists ${liveWanter} then kept.wanted_by end, epoch = kept.epoch + 1, wanted_by = null,
      progress_check = kept.progress_check + ${nextEpochCheckSql(sql`kept.epoch`)}
    from given join held on held.id = given.id
    where kept.id = given.id and kept.epoch = given.epoch
      and ${condition}
    returning kept.id, kept.owner`.execute(transaction);
  return moved.rows.map(({ id, owner }) => ({ id, owner: owner ?? undefined }));
}

function toOwned(row: Pick<SubscriptionTable, "id" | "epoch" | "group_id" | "wanted_by">): OwnedSubscription {
  return {
    id: row.id as OwnedSubscription["id"],
    epoch: row.epoch,
    groupId: row.group_id as OwnedSubscription["groupId"],
    wantedBy: (row.wanted_by ?? undefined) as OwnedSubscription["wantedBy"],
  };
}
