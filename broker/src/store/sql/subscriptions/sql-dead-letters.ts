import type { EventId } from "@stele/wire";
import type { RawBuilder, Transaction } from "kysely";
import type { DeadLetter } from "../../../domain/dead-letter.ts";
import type { Position } from "../../../domain/position.ts";
import type { SubscriptionId } from "../../../domain/subscription.ts";
import type { DeadLetterPage, DeadLetters } from "../../../ports/dead-letters.ts";
import { fromLetterRow, isIntactLetter, toLetterRow } from "./dead-letter-rows.ts";
import type { DeadLetterTable } from "./dead-letter-table.ts";
import type { Schema, SqlDatabase } from "../schema.ts";

/** Reads, replaces and removes dead letters. `SqlDatabase.saveProgress` inserts them. */
export class SqlDeadLetters implements DeadLetters {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  /** See DeadLetters.list. The default of `after` is before every position. */
  async list(id: SubscriptionId, { after = -1 as Position, limit }: DeadLetterPage): Promise<readonly DeadLetter[]> {
    const rows = await this.#of(id).where("position", ">", after).orderBy("position").limit(limit).execute();
    return rows.map((row) => this.#checked(row));
  }

  async find(id: SubscriptionId, eventId: EventId): Promise<readonly DeadLetter[]> {
    const rows = await this.#of(id).where("event_id", "=", eventId).orderBy("position").execute();
    return rows.map((row) => this.#checked(row));
  }

  async count(id: SubscriptionId): Promise<number> {
    const { count } = await this.#database.relaxed
      .selectFrom("dead_letters")
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .where("subscription_id", "=", id)
      .executeTakeFirstOrThrow();
    return count;
  }

  async remove(letters: readonly DeadLetter[]): Promise<number> {
    return this.#database.durable.transaction().execute(async (transaction) => {
      let count = 0;
      for (const letter of letters) {
        const { subscriptionId, position, eventId, attempts, failedAt } = letter;
        const { numDeletedRows } = await transaction
          .deleteFrom("dead_letters")
          .where("subscription_id", "=", subscriptionId)
          .where("position", "=", position)
          .where("event_id", "=", eventId)
          .where("attempts", "=", attempts)
          .where("failed_at", "=", failedAt)
          .executeTakeFirst();
        count += Number(numDeletedRows);
      }
      return count;
    });
  }

  async replace(letter: DeadLetter, next: Pick<DeadLetter, "attempts" | "reason" | "failedAt">): Promise<boolean> {
    const { attempts, reason, failed_at, checksum } = toLetterRow({ ...letter, ...next });
    const { numUpdatedRows } = await this.#database.durable
      .updateTable("dead_letters")
      .set({ attempts, reason, failed_at, checksum })
      .where("subscription_id", "=", letter.subscriptionId)
      .where("position", "=", letter.position)
      .where("event_id", "=", letter.eventId)
      .where("attempts", "=", letter.attempts)
      .where("failed_at", "=", letter.failedAt)
      .executeTakeFirst();
    return numUpdatedRows === 1n;
  }

  #of(id: SubscriptionId) {
    return this.#database.relaxed.selectFrom("dead_letters").selectAll().where("subscription_id", "=", id);
  }

  #checked(row: DeadLetterTable): DeadLetter {
    if (!isIntactLetter(row))
      throw this.#database.damaged("a row of the table dead_letters does not match its checksum");
    return fromLetterRow(row);
  }
}

/** Deletes a subscription's letters after its new cursor. */
export async function dropLettersAfter(
  transaction: Transaction<Schema>,
  id: SubscriptionId,
  cursor: Position,
): Promise<void> {
  await transaction
    .deleteFrom("dead_letters")
    .where("subscription_id", "=", id)
    .where("position", ">", cursor)
    .execute();
}

/** Deletes all letters of up to 1,000 subscriptions after `end`, to which a rollback moved the cursors back. */
export async function cutBackLetters(
  transaction: Transaction<Schema>,
  { ids, end }: { readonly ids: RawBuilder<string>; readonly end: Position },
): Promise<void> {
  await transaction
    .deleteFrom("dead_letters")
    .where("subscription_id", "in", ids)
    .where("position", ">", end)
    .execute();
}

/** Passes calls on to the dead letters of a store that may be opened later, or again. */
export function passOnLetters(letters: () => DeadLetters): DeadLetters {
  return {
    list: async (id, page) => letters().list(id, page),
    find: async (id, eventId) => letters().find(id, eventId),
    count: async (id) => letters().count(id),
    remove: async (some) => letters().remove(some),
    replace: async (letter, next) => letters().replace(letter, next),
  };
}
