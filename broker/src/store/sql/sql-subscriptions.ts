import type { CompiledQuery } from "kysely";
import type { Subscription, SubscriptionId, SubscriptionState } from "../../domain/subscription.ts";
import type { SubscriptionKey } from "../../ports/coordinator.ts";
import type { InsertOutcome, Progress } from "../../ports/store.ts";
import { fromSubscriptionRow, toSubscriptionRow } from "./rows.ts";
import type { SqlDatabase } from "./schema.ts";
import { createSubscriptionQueries, type SubscriptionQueries } from "./subscription-queries.ts";

/** The subscriptions' half of the store. What is answered true is on disk, but for progress. */
export class SqlSubscriptions {
  readonly #database: SqlDatabase;
  readonly #queries: SubscriptionQueries;

  constructor(database: SqlDatabase) {
    this.#database = database;
    this.#queries = createSubscriptionQueries(database.relaxed);
  }

  async find(id: SubscriptionId): Promise<Subscription | undefined> {
    const { rows } = await this.#database.relaxed.executeQuery(this.#queries.find.bind({ id }));
    return rows[0] === undefined ? undefined : fromSubscriptionRow(rows[0]);
  }

  async list(): Promise<readonly Subscription[]> {
    const { rows } = await this.#database.relaxed.executeQuery(this.#queries.list.bind({}));
    return rows.map(fromSubscriptionRow);
  }

  async findAll(ids: readonly SubscriptionId[]): Promise<readonly Subscription[]> {
    if (ids.length === 0) return [];
    const rows = await this.#database.relaxed.selectFrom("subscriptions").selectAll().where("id", "in", ids).execute();
    return rows.map(fromSubscriptionRow);
  }

  async count(): Promise<number> {
    const { rows } = await this.#database.relaxed.executeQuery(this.#queries.count.bind({}));
    return Number(rows[0]?.count ?? 0);
  }

  async insert(subscription: Subscription, generation: number): Promise<InsertOutcome> {
    return this.#database.durable.transaction().execute(async (transaction) => {
      const head = await transaction
        .selectFrom("groups")
        .select("generation")
        .where("group_id", "=", subscription.groupId)
        .executeTakeFirst();
      const insert = this.#queries.insert.bind(toSubscriptionRow(subscription));
      if ((head?.generation ?? 0) !== generation) return "went-back";
      const { numAffectedRows } = await transaction.executeQuery(insert);
      return numAffectedRows === 1n ? "inserted" : "taken";
    });
  }

  async update(
    key: SubscriptionKey,
    change: Pick<Subscription, "url" | "interfaceType" | "secret" | "state">,
  ): Promise<boolean> {
    const { url, interfaceType, secret, state } = change;
    const row = { ...toKey(key), url, interface_type: interfaceType, secret: secret ?? null, state };
    return this.#changeDurably(this.#queries.update.bind(row));
  }

  async setState(key: SubscriptionKey, state: SubscriptionState): Promise<boolean> {
    return this.#changeDurably(this.#queries.setState.bind({ ...toKey(key), state }));
  }

  async delete(key: SubscriptionKey): Promise<boolean> {
    return this.#changeDurably(this.#queries.delete.bind(toKey(key)));
  }

  async saveProgress(rows: readonly Progress[]): Promise<readonly SubscriptionId[]> {
    if (rows.length === 0) return [];
    await this.#database.relaxed.transaction().execute(async (transaction) => {
      for (const { id, epoch, cursor, notifiedCount, notifiedAt } of rows) {
        const row = { id, epoch, cursor, notified_count: notifiedCount, notified_at: notifiedAt };
        await transaction.executeQuery(this.#queries.advance.bind(row));
      }
    });
    return [];
  }

  /** One statement is one transaction. */
  async #changeDurably(query: CompiledQuery): Promise<boolean> {
    const { numAffectedRows } = await this.#database.durable.executeQuery(query);
    return numAffectedRows === 1n;
  }
}

function toKey({ id, epoch }: SubscriptionKey): SubscriptionKey {
  return { id, epoch };
}
