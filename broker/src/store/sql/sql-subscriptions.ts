import type { CompiledQuery, Transaction } from "kysely";
import { positionZero } from "../../domain/position.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { Subscription, SubscriptionId, SubscriptionState } from "../../domain/subscription.ts";
import { GroupCommit } from "../../lib/group-commit.ts";
import type { SubscriptionKey } from "../../ports/coordinator.ts";
import type { SecretChange } from "../../ports/secret-rows.ts";
import type { CallbackChange, InsertOutcome, Progress, SubscriptionPage } from "../../ports/store.ts";
import { isIntactSubscription, progressCheck, withChecksum } from "./row-checksums.ts";
import { fromSubscriptionRow, toDeliveryColumns, toSubscriptionRow } from "./rows.ts";
import type { Schema, SqlDatabase, SubscriptionTable } from "./schema.ts";
import { StoreError } from "./store-error.ts";
import { createSubscriptionQueries, findSubscriptions, type SubscriptionQueries } from "./subscription-queries.ts";

interface NewSubscription {
  readonly subscription: Subscription;
  /** Of the index in which its cursor lies. */
  readonly generation: number;
}

type SubscriptionChange = Pick<SubscriptionTable, "id"> & Partial<SubscriptionTable>;

const everything: SubscriptionPage = { after: undefined, limit: Number.MAX_SAFE_INTEGER };

/** Subscriptions that one transaction inserts. */
const insertedTogetherMax = 256;

/** Lock that a rollback holds exclusively, and that a transaction shares if it writes a position that must stay valid until its commit. */
export function goingBack(groupId: string): string {
  return `going back ${groupId}`;
}

/** The subscriptions' half of the store. A call that returns true is on disk, except for progress. */
export class SqlSubscriptions {
  readonly #database: SqlDatabase;
  readonly #queries: SubscriptionQueries;
  /** By group: a rollback holds up the inserts of its group alone. */
  readonly #inserts = new Map<GroupId, GroupCommit<NewSubscription, InsertOutcome>>();

  constructor(database: SqlDatabase) {
    this.#database = database;
    this.#queries = createSubscriptionQueries(database.relaxed);
  }

  async find(id: SubscriptionId): Promise<Subscription | undefined> {
    const { rows } = await this.#database.relaxed.executeQuery(this.#queries.find.bind({ id }));
    return rows[0] === undefined ? undefined : fromSubscriptionRow(rows[0]);
  }

  /** The empty text sorts before every identifier. */
  async list({ after, limit }: SubscriptionPage = everything): Promise<readonly Subscription[]> {
    const { rows } = await this.#database.relaxed.executeQuery(this.#queries.list.bind({ after: after ?? "", limit }));
    return rows.map(fromSubscriptionRow);
  }

  async findAll(ids: readonly SubscriptionId[]): Promise<readonly Subscription[]> {
    if (ids.length === 0) return [];
    const rows = await findSubscriptions(this.#database, ids).execute();
    return rows.map(fromSubscriptionRow);
  }

  async count(): Promise<number> {
    const { rows } = await this.#database.relaxed.executeQuery(this.#queries.count.bind({}));
    return rows[0]?.count ?? 0;
  }

  async countTo(receiver: string): Promise<number> {
    const { rows } = await this.#database.relaxed.executeQuery(this.#queries.countTo.bind({ receiver }));
    return rows[0]?.count ?? 0;
  }

  /** Inserts of a group that arrive while a transaction is in progress share the next one: one commit for all of them. */
  async insert(subscription: Subscription, generation: number): Promise<InsertOutcome> {
    const { groupId } = subscription;
    const inserts = this.#inserts.get(groupId) ?? this.#groupInserts(groupId);
    return inserts.add({ subscription, generation });
  }

  #groupInserts(groupId: GroupId): GroupCommit<NewSubscription, InsertOutcome> {
    const inserts = new GroupCommit<NewSubscription, InsertOutcome>({
      commit: (items) => this.#insertAll(groupId, items),
      itemsMax: insertedTogetherMax,
      mayBeOfOne: (error) => !(error instanceof StoreError) || error.fault === "other",
    });
    this.#inserts.set(groupId, inserts);
    return inserts;
  }

  async #insertAll(groupId: GroupId, items: readonly NewSubscription[]): Promise<readonly InsertOutcome[]> {
    return this.#database.durable.transaction().execute(async (transaction) => {
      await this.#database.lock(transaction, goingBack(groupId), "shared");
      const { rows: heads } = await transaction.executeQuery(this.#queries.findGeneration.bind({ group_id: groupId }));
      const current = heads[0]?.generation ?? 0;
      const due = items.filter((item) => isInIndex(item, current));
      const rows = new Map(due.map(({ subscription }) => [subscription.id, subscription]));
      // In the order of identifiers: transactions of two nodes that insert the same ones must not deadlock.
      const ordered = [...rows.values()].toSorted((left, right) => (left.id < right.id ? -1 : 1));
      const made = await this.#database.rowWriter.insertSubscriptions(transaction, ordered.map(toSubscriptionRow));
      const inserted = new Set(made.map(({ id }) => id));
      return items.map((item) => {
        if (!isInIndex(item, current)) return "went-back";
        const { id } = item.subscription;
        return rows.get(id) === item.subscription && inserted.has(id) ? "inserted" : "taken";
      });
    });
  }

  async update(key: SubscriptionKey, { delivery, state, principal }: CallbackChange): Promise<boolean> {
    const owned = principal === undefined ? {} : { principal };
    const columns = { ...toDeliveryColumns(delivery), state, failed_attempts: 0, failed_ms: 0, ...owned };
    return this.#change((row) => row.epoch === key.epoch, { id: key.id, ...columns });
  }

  async replaceSecrets(changes: readonly SecretChange[]): Promise<number> {
    return this.#database.durable.transaction().execute(async (transaction) => {
      let count = 0;
      for (const { id, from, to } of changes) {
        const isDue = (row: SubscriptionTable): boolean => row.secret === from;
        if (await this.#changeWithin(transaction, isDue, { id, secret: to })) count += 1;
      }
      return count;
    });
  }

  async setState(key: SubscriptionKey, state: SubscriptionState): Promise<boolean> {
    return this.#change((row) => row.epoch === key.epoch, { id: key.id, state });
  }

  async delete(key: SubscriptionKey): Promise<boolean> {
    return this.#changeDurably(this.#queries.delete.bind(toKey(key)));
  }

  async saveProgress(rows: readonly Progress[]): Promise<readonly SubscriptionId[]> {
    if (rows.length === 0) return [];
    const refused = await this.#database.saveProgress(
      rows.map(({ id, epoch, cursor, notifiedCount, notifiedAt, failedAttempts, failedMs }) => {
        const progress = {
          epoch,
          cursor,
          notified_count: notifiedCount,
          notified_at: notifiedAt,
          failed_attempts: failedAttempts,
          failed_ms: failedMs,
        };
        return { id, ...progress, progress_check: progressCheck(progress) };
      }),
    );
    return refused as readonly SubscriptionId[]; // Some of those given.
  }

  async #change(isDue: (row: SubscriptionTable) => boolean, change: SubscriptionChange): Promise<boolean> {
    const { durable } = this.#database;
    return durable.transaction().execute((transaction) => this.#changeWithin(transaction, isDue, change));
  }

  /** Reads the row first, since its checksum also covers the columns that do not change. A damaged row stays unchanged. */
  async #changeWithin(
    transaction: Transaction<Schema>,
    isDue: (row: SubscriptionTable) => boolean,
    change: SubscriptionChange,
  ): Promise<boolean> {
    const finding = transaction.selectFrom("subscriptions").selectAll().where("id", "=", change.id);
    const row = await this.#database.locking(finding).executeTakeFirst();
    if (row === undefined || !isDue(row) || !isIntactSubscription(row)) return false;
    const next = { ...row, ...change };
    const changed = withChecksum("subscriptions", { ...next, progress_check: progressCheck(next) });
    await transaction.executeQuery(this.#queries.update.bind(changed));
    return true;
  }

  /** One statement is one transaction. */
  async #changeDurably(query: CompiledQuery): Promise<boolean> {
    const { numAffectedRows } = await this.#database.durable.executeQuery(query);
    return numAffectedRows === 1n;
  }
}

/** A cursor before every event cannot point to an event that a rollback removed. */
function isInIndex({ subscription, generation }: NewSubscription, current: number): boolean {
  return subscription.cursor <= positionZero || generation === current;
}

function toKey({ id, epoch }: SubscriptionKey): SubscriptionKey {
  return { id, epoch };
}
