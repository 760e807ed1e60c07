import { type Kysely, sql, type Transaction } from "kysely";
import type { GroupId } from "../../../../domain/group-id.ts";
import type { ClusterNode, NodeId } from "../../../../domain/node.ts";
import type { Address } from "../../../../domain/topic.ts";
import type { GroupLease } from "../../../../ports/coordinator.ts";
import { membershipEnded } from "../../../membership-ended.ts";
import type { GroupLeaseTable } from "../../coordination-tables.ts";
import type { Schema } from "../../schema.ts";
import { sendHints } from "./hint-text.ts";
import { findPresent, isLive, removeExpired } from "./members.ts";

/** The node that writes each group's index, and the node that signs with each address. */
export class Leases {
  readonly #queries: Kysely<Schema>;

  constructor(queries: Kysely<Schema>) {
    this.#queries = queries;
  }

  /** Only reads the row as long as a live member holds the lease, since the index's writer locks the row. */
  async take(groupId: GroupId, nodeId: NodeId): Promise<GroupLease | undefined> {
    const held = await this.#findHeld(groupId);
    if (held !== undefined) return held.node_id === nodeId ? { groupId, nodeId, epoch: held.epoch } : undefined;
    await removeExpired(this.#queries);
    return this.#queries.transaction().execute(async (transaction) => take(transaction, groupId, nodeId));
  }

  async list(): Promise<readonly GroupLease[]> {
    const rows = await this.#held.orderBy(sql`group_leases.group_id collate "C"`).execute();
    return rows.flatMap(({ group_id, node_id, epoch }) => {
      const groupId = group_id as GroupId; // Unchanged since it was stored.
      return node_id === null ? [] : [{ groupId, nodeId: node_id as NodeId, epoch }];
    });
  }

  async release({ groupId, nodeId, epoch }: GroupLease): Promise<void> {
    await this.#queries.transaction().execute(async (transaction) => {
      const { numUpdatedRows } = await transaction
        .updateTable("group_leases")
        .set({ node_id: null })
        .where("group_id", "=", groupId)
        .where("node_id", "=", nodeId)
        .where("epoch", "=", epoch)
        .executeTakeFirst();
      if (numUpdatedRows > 0n) await sendHints(transaction, [{ kind: "nodes" }]);
    });
  }

  async reserveSigner(
    { groupId, sender }: { readonly groupId: GroupId; readonly sender: Address },
    nodeId: NodeId,
  ): Promise<ClusterNode | undefined> {
    await removeExpired(this.#queries);
    return this.#queries.transaction().execute(async (transaction) => {
      const row = { group_id: groupId, sender, node_id: nodeId };
      await transaction
        .insertInto("signers")
        .values(row)
        .onConflict((conflict) => conflict.doNothing())
        .execute();
      const signers = transaction.selectFrom("signers").select("node_id").where("group_id", "=", groupId);
      const { node_id: owner } = await signers.where("sender", "=", sender).forUpdate().executeTakeFirstOrThrow();
      const present = await findPresent(transaction, [owner, nodeId]);
      if (!present.has(nodeId)) throw membershipEnded();
      if (owner === nodeId || present.has(owner)) return owner === nodeId ? undefined : present.get(owner);
      const changing = transaction.updateTable("signers").set({ node_id: nodeId }).where("group_id", "=", groupId);
      await changing.where("sender", "=", sender).execute();
      return undefined;
    });
  }

  async listSigners(groupId: GroupId): Promise<readonly Address[]> {
    const rows = await this.#queries
      .selectFrom("signers")
      .innerJoin("nodes", "nodes.node_id", "signers.node_id")
      .select("signers.sender")
      .where("signers.group_id", "=", groupId)
      .where(isLive(sql.ref("nodes.expires_at")))
      .orderBy("signers.sender")
      .execute();
    return rows.map(({ sender }) => sender as Address); // Unchanged since it was stored.
  }

  async #findHeld(groupId: GroupId): Promise<GroupLeaseTable | undefined> {
    return this.#held.where("group_leases.group_id", "=", groupId).executeTakeFirst();
  }

  /** The leases of live members. */
  get #held() {
    return this.#queries
      .selectFrom("group_leases")
      .innerJoin("nodes", "nodes.node_id", "group_leases.node_id")
      .select(["group_leases.group_id", "group_leases.node_id", "group_leases.epoch"])
      .where(isLive(sql.ref("nodes.expires_at")));
  }
}

async function take(
  transaction: Transaction<Schema>,
  groupId: GroupId,
  nodeId: NodeId,
): Promise<GroupLease | undefined> {
  await transaction
    .insertInto("group_leases")
    .values({ group_id: groupId, node_id: null, epoch: 0 })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const lease = await transaction
    .selectFrom("group_leases")
    .select(["node_id", "epoch"])
    .where("group_id", "=", groupId)
    .forUpdate()
    .executeTakeFirstOrThrow();
  const present = await findPresent(transaction, [lease.node_id, nodeId]);
  if (!present.has(nodeId)) return undefined;
  if (lease.node_id === nodeId) return { groupId, nodeId, epoch: lease.epoch };
  if (lease.node_id !== null && present.has(lease.node_id)) return undefined;
  const epoch = lease.epoch + 1;
  const changing = transaction.updateTable("group_leases").set({ node_id: nodeId, epoch });
  await changing.where("group_id", "=", groupId).execute();
  const from = (lease.node_id ?? undefined) as NodeId | undefined; // Unchanged since it was stored.
  await sendHints(transaction, [{ kind: "taken", nodeId, from, groupId, subscriptions: 0 }]);
  return { groupId, nodeId, epoch };
}
