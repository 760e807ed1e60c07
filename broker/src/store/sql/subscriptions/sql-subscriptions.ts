import type { Transaction } from "kysely";
import { type Position, positionZero } from "../../../domain/position.ts";
import type { GroupId } from "../../../domain/group-id.ts";
import {
  nothingFailed,
  type Subscription,
  type SubscriptionId,
  type SubscriptionState,
} from "../../../domain/subscription.ts";
import type { OverQuota, StoredQuota } from "../../../domain/quota.ts";
import { GroupCommit } from "../../../lib/group-commit.ts";
import type { SubscriptionKey } from "../../../ports/coordinator.ts";
import type { SecretChange } from "../../../ports/secret-rows.ts";
import type {
  CallbackChange,
  HeldCount,
  InsertOutcome,
  Progress,
  Store,
  SubscriptionPage,
} from "../../../ports/store.ts";
import type { SubscriptionMove, SubscriptionSearch } from "../../../ports/subscription-search.ts";
import { toLetterRow } from "./dead-letter-rows.ts";
import { dropLettersAfter } from "./sql-dead-letters.ts";
import { isIntactSubscription, progressCheck, withChecksum } from "../row-checksums.ts";
import { fromSubscriptionRow, toDeliveryColumns, toFailureColumns, toSubscriptionRow } from "../rows.ts";
import type { Schema, SqlDatabase, SubscriptionTable } from "../schema.ts";
import { QuotaTallies } from "../access/stored-quotas.ts";
import { StoreError } from "../store-error.ts";
import {
  createSubscriptionQueries,
  findSubscriptions,
  searchSubscriptions,
  type SubscriptionQueries,
} from "./subscription-queries.ts";

interface NewSubscription {
  readonly subscription: Subscription;
  /** Generation of the index from which the cursor comes. */
  readonly generation: number;
  readonly quotas: readonly StoredQuota[];
}

interface Admission {
  readonly admitted: readonly NewSubscription[];
  readonly refused: ReadonlyMap<NewSubscription, OverQuota>;
}

type SubscriptionChange = Pick<SubscriptionTable, "id"> & Partial<SubscriptionTable>;

const everything: SubscriptionPage = { after: undefined, limit: Number.MAX_SAFE_INTEGER };

/** Maximum number of subscriptions that one transaction inserts. */
const insertedTogetherMax = 256;

/** Name of the lock that a rollback holds exclusively. A transaction takes it in shared mode to write a position that must stay valid until the commit. */
export function rollbackLock(groupId: string): string {
  return `going back ${groupId}`; // Nodes of earlier versions use the same text.
}

/** The subscriptions' part of the store. A change is on disk when its call returns, except for progress. */
export class SqlSubscriptions {
  readonly #database: SqlDatabase;
  readonly #queries: SubscriptionQueries;
  /** Inserts in progress, by group, so that a rollback delays only the inserts of its own group. */
  readonly #inserts = new Map<GroupId, GroupCommit<NewSubscription, InsertOutcome>>();

  constructor(database: SqlDatabase) {
    this.#database = database;
    this.#queries = createSubscriptionQueries(database.relaxed);
  }

  async find(id: SubscriptionId): Promise<Subscription | undefined> {
    const { rows } = await this.#database.relaxed.executeQuery(this.#queries.find.bind({ id }));
    return rows[0] === undefined ? undefined : fromSubscriptionRow(rows[0]);
  }

  /** Without `after`, begins with the first subscription: the empty text sorts before every identifier. */
  async list({ after, limit }: SubscriptionPage = everything): Promise<readonly Subscription[]> {
    const { rows } = await this.#database.relaxed.executeQuery(this.#queries.list.bind({ after: after ?? "", limit }));
    return rows.map(fromSubscriptionRow);
  }

  async findAll(ids: readonly SubscriptionId[]): Promise<readonly Subscription[]> {
    if (ids.length === 0) return [];
    const rows = await findSubscriptions(this.#database, ids).execute();
    return rows.map(fromSubscriptionRow);
  }

  async search(search: SubscriptionSearch, page: SubscriptionPage): Promise<readonly Subscription[]> {
    const rows = await searchSubscriptions(this.#database, search, page).execute();
    return rows.map(fromSubscriptionRow);
  }

  async count(): Promise<number> {
    const { rows } = await this.#database.relaxed.executeQuery(this.#queries.count.bind({}));
    return rows[0]?.count ?? 0;
  }

  async countHeld(): Promise<readonly HeldCount[]> {
    const { rows } = await this.#database.relaxed.executeQuery(this.#queries.countHeld.bind({}));
    return rows.map(({ group_id, state, count }) => {
      return { groupId: group_id as GroupId, state: state as SubscriptionState, count }; // Unchanged since they were stored.
    });
  }

  async countTo(receiver: string): Promise<number> {
    const { rows } = await this.#database.relaxed.executeQuery(this.#queries.countTo.bind({ receiver }));
    return rows[0]?.count ?? 0;
  }

  /** Inserts of a group that arrive while a transaction is in progress share the next one: one commit for all of them. */
  async insert(row: NewSubscription): Promise<InsertOutcome> {
    const { groupId } = row.subscription;
    const inserts = this.#inserts.get(groupId) ?? this.#groupInserts(groupId);
    return inserts.add(row);
  }

  #groupInserts(groupId: GroupId): GroupCommit<NewSubscription, InsertOutcome> {
    const inserts = new GroupCommit<NewSubscription, InsertOutcome>({
      commit: (items) => this.#insertAll(groupId, items),
      itemsMax: insertedTogetherMax,
      mayBeCausedByOneItem: (error) => !(error instanceof StoreError) || error.fault === "other",
    });
    this.#inserts.set(groupId, inserts);
    return inserts;
  }

  async #insertAll(groupId: GroupId, items: readonly NewSubscription[]): Promise<readonly InsertOutcome[]> {
    return this.#database.durable.transaction().execute(async (transaction) => {
      const current = await this.#lockGeneration(transaction, groupId);
      const isValid = ({ subscription: { cursor }, generation }: NewSubscription): boolean =>
        isInIndex(cursor, { generation, current });
      const due = items.filter(isValid);
      const { admitted, refused } = await this.#admit(transaction, due);
      const rows = new Map(admitted.map(({ subscription }) => [subscription.id, subscription]));
      // In the order of identifiers, so that transactions of two nodes that insert the same ones cannot deadlock.
      const ordered = [...rows.values()].toSorted((left, right) => (left.id < right.id ? -1 : 1));
      const made = await this.#database.rowWriter.insertSubscriptions(transaction, ordered.map(toSubscriptionRow));
      const inserted = new Set(made.map(({ id }) => id));
      return items.map((item) => {
        if (!isValid(item)) return "rolled-back";
        const exceeded = refused.get(item);
        if (exceeded !== undefined) return exceeded;
        const { id } = item.subscription;
        return rows.get(id) === item.subscription && inserted.has(id) ? "inserted" : "taken";
      });
    });
  }

  /** The generation of a group's index, which no rollback changes before the transaction ends. */
  async #lockGeneration(transaction: Transaction<Schema>, groupId: GroupId): Promise<number> {
    await this.#database.lock(transaction, rollbackLock(groupId), "shared");
    const { rows } = await transaction.executeQuery(this.#queries.findGeneration.bind({ group_id: groupId }));
    return rows[0]?.generation ?? 0;
  }

  /** Checks the quotas of the rows. Admits no row whose identifier is taken, so that it does not count. */
  async #admit(transaction: Transaction<Schema>, items: readonly NewSubscription[]): Promise<Admission> {
    const refused = new Map<NewSubscription, OverQuota>();
    const quotas = items.flatMap((item) => item.quotas);
    if (quotas.length === 0) return { admitted: items, refused };
    const tallies = await QuotaTallies.read(this.#database, transaction, { quotas });
    const ids = this.#database.column(items.map(({ subscription }) => subscription.id));
    const rows = await transaction.selectFrom("subscriptions").select("id").where("id", "in", ids).execute();
    const taken = new Set(rows.map(({ id }) => id));
    const admitted = items.filter((item) => {
      if (taken.has(item.subscription.id)) return false;
      const exceeded = tallies.admit(item.quotas, toDeliveryColumns(item.subscription.delivery));
      if (exceeded !== undefined) refused.set(item, exceeded);
      return exceeded === undefined;
    });
    return { admitted, refused };
  }

  async update(
    { id, epoch }: SubscriptionKey,
    { delivery, state, principal }: CallbackChange,
    quotas: readonly StoredQuota[],
  ): Promise<boolean | OverQuota> {
    const owned = principal === undefined ? {} : { principal };
    const columns = { ...toDeliveryColumns(delivery), state, ...toFailureColumns(nothingFailed), ...owned };
    return this.#database.durable.transaction().execute(async (transaction) => {
      if (quotas.length > 0) {
        const tallies = await QuotaTallies.read(this.#database, transaction, { quotas, except: id });
        const exceeded = tallies.admit(quotas, columns);
        if (exceeded !== undefined) return exceeded;
      }
      return this.#changeWithin(transaction, (row) => row.epoch === epoch, { id, ...columns, epoch: epoch + 1 });
    });
  }

  async move(
    { id, epoch, groupId }: Parameters<Store["moveSubscription"]>[0],
    { cursor, delivery, failure = nothingFailed, ...direct }: SubscriptionMove,
    generation: number,
  ): ReturnType<Store["moveSubscription"]> {
    return this.#database.durable.transaction().execute(async (transaction) => {
      const current = await this.#lockGeneration(transaction, groupId);
      if (cursor !== undefined && !isInIndex(cursor, { generation, current })) return "rolled-back";
      const change = {
        ...direct,
        ...(cursor !== undefined && { cursor }),
        ...(delivery !== undefined && toDeliveryColumns(delivery)),
      };
      const isDue = (row: SubscriptionTable): boolean => row.epoch === epoch;
      const next = { id, ...change, ...toFailureColumns(failure), epoch: epoch + 1 };
      if (!(await this.#changeWithin(transaction, isDue, next))) return "refused";
      if (cursor !== undefined) await dropLettersAfter(transaction, id, cursor);
      return "moved";
    });
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
    return this.#database.durable.transaction().execute(async (transaction) => {
      const { numAffectedRows } = await transaction.executeQuery(this.#queries.delete.bind(toKey(key)));
      if (numAffectedRows !== 1n) return false;
      await transaction.deleteFrom("dead_letters").where("subscription_id", "=", key.id).execute();
      return true;
    });
  }

  async saveProgress(rows: readonly Progress[]): Promise<readonly SubscriptionId[]> {
    if (rows.length === 0) return [];
    const refused = await this.#database.saveProgress(
      rows.map((row) => {
        const progress = {
          epoch: row.epoch,
          cursor: row.cursor,
          notified_count: row.notifiedCount,
          notified_at: row.notifiedAt,
          ...toFailureColumns(row),
        };
        return { id: row.id, ...progress, progress_check: progressCheck(progress) };
      }),
      rows.flatMap(({ skipped = [] }) => skipped.map(toLetterRow)),
    );
    return refused as readonly SubscriptionId[]; // Identifiers of the given rows.
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
    const query = transaction.selectFrom("subscriptions").selectAll().where("id", "=", change.id);
    const row = await this.#database.locking(query).executeTakeFirst();
    if (row === undefined || !isDue(row) || !isIntactSubscription(row)) return false;
    const next = { ...row, ...change };
    const changed = withChecksum("subscriptions", { ...next, progress_check: progressCheck(next) });
    await transaction.executeQuery(this.#queries.update.bind(changed));
    return true;
  }
}

/** Whether a cursor is valid in the current index. A cursor before every event always is, since no rollback moves it. */
function isInIndex(
  cursor: Position,
  { generation, current }: { readonly generation: number; readonly current: number },
): boolean {
  return cursor <= positionZero || generation === current;
}

function toKey({ id, epoch }: SubscriptionKey): SubscriptionKey {
  return { id, epoch };
}
