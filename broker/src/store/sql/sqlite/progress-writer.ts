import type { Kysely, Transaction } from "kysely";
import type { DeadLetterTable } from "../subscriptions/dead-letter-table.ts";
import { prepare } from "../prepared.ts";
import type { ProgressRow, Schema, SubscriptionTable } from "../schema.ts";

type Key = Pick<SubscriptionTable, "id" | "epoch">;

/** Writes progress row by row, the fastest way for a database inside the process. */
export class ProgressWriter {
  readonly #database: Kysely<Schema>;
  readonly #queries;

  constructor(database: Kysely<Schema>) {
    this.#database = database;
    this.#queries = createProgressQueries(database);
  }

  /** Returns the ids of the `rows` whose subscription is not stored with that epoch. Does not change a stored row that is already further. */
  async save(rows: readonly ProgressRow[], letters: readonly DeadLetterTable[]): Promise<readonly string[]> {
    return this.#database.transaction().execute(async (transaction) => {
      const refused: string[] = [];
      await this.#insertPassed(transaction, rows, letters);
      for (const row of rows) {
        const { numAffectedRows } = await transaction.executeQuery(this.#queries.advance.bind(row));
        if (numAffectedRows === 1n) continue;
        const { id, epoch } = row;
        const found = await transaction.executeQuery(this.#queries.find.bind({ id, epoch }));
        if (found.rows.length === 0) refused.push(id);
      }
      return refused;
    });
  }

  /** Inserts those dead letters whose subscription is stored with the row's epoch and a cursor before their position. */
  async #insertPassed(
    transaction: Transaction<Schema>,
    rows: readonly ProgressRow[],
    letters: readonly DeadLetterTable[],
  ): Promise<void> {
    const epochs = new Map(rows.map(({ id, epoch }) => [id, epoch]));
    for (const letter of letters) {
      const { subscription_id: id, position } = letter;
      const found = await transaction.executeQuery(this.#queries.find.bind({ id, epoch: epochs.get(id) ?? -1 }));
      const [row] = found.rows;
      if (row === undefined || row.cursor >= position) continue;
      await transaction
        .insertInto("dead_letters")
        .values(letter)
        .onConflict((conflict) => conflict.columns(["subscription_id", "position"]).doNothing())
        .execute();
    }
  }
}

export function createProgressQueries(database: Kysely<Schema>) {
  return {
    advance: prepare((progress: ProgressRow) => {
      const { id, epoch, cursor, notified_count, notified_at, progress_check } = progress;
      const { failed_attempts, failed_ms, failing_since, retry_at } = progress;
      const failure = { failed_attempts, failed_ms, failing_since, retry_at };
      return database
        .updateTable("subscriptions")
        .set({ cursor, notified_count, notified_at, ...failure, progress_check })
        .where("id", "=", id)
        .where("epoch", "=", epoch)
        .where("cursor", "<=", cursor)
        .where((row) =>
          row.or([
            row("cursor", "<", cursor),
            row("failed_ms", "<", failed_ms),
            row("failing_since", "<", failing_since),
            row("retry_at", "<", retry_at),
          ]),
        );
    }),
    find: prepare(({ id, epoch }: Key) =>
      database.selectFrom("subscriptions").select(["id", "cursor"]).where("id", "=", id).where("epoch", "=", epoch),
    ),
  };
}
