import type { CompiledQuery } from "kysely";
import type { Subscription, SubscriptionId, SubscriptionState } from "../../domain/subscription.ts";
import type { Progress } from "../../ports/store.ts";
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

  async insert(subscription: Subscription): Promise<boolean> {
    return this.#changeDurably(this.#queries.insert.bind(toSubscriptionRow(subscription)));
  }

  async update(
    id: SubscriptionId,
    change: Pick<Subscription, "url" | "interfaceType" | "secret" | "state">,
  ): Promise<boolean> {
    const { url, interfaceType, secret, state } = change;
    const row = { id, url, interface_type: interfaceType, secret: secret ?? null, state };
    return this.#changeDurably(this.#queries.update.bind(row));
  }

  async setState(id: SubscriptionId, state: SubscriptionState): Promise<boolean> {
    return this.#changeDurably(this.#queries.setState.bind({ id, state }));
  }

  async delete(id: SubscriptionId): Promise<boolean> {
    return this.#changeDurably(this.#queries.delete.bind({ id }));
  }

  async saveProgress(rows: readonly Progress[]): Promise<void> {
    if (rows.length === 0) return;
    await this.#database.relaxed.transaction().execute(async (transaction) => {
      for (const { id, cursor, notifiedCount, notifiedAt } of rows) {
        const row = { id, cursor, notified_count: notifiedCount, notified_at: notifiedAt };
        await transaction.executeQuery(this.#queries.advance.bind(row));
      }
    });
  }

  /** One statement is one transaction. */
  async #changeDurably(query: CompiledQuery): Promise<boolean> {
    const { numAffectedRows } = await this.#database.durable.executeQuery(query);
    return numAffectedRows === 1n;
  }
}
