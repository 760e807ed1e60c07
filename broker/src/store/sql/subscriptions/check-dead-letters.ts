import { sql, type Transaction } from "kysely";
import type { Logger } from "../../../lib/logger.ts";
import { isIntactLetter } from "./dead-letter-rows.ts";
import type { DeadLetterTable } from "./dead-letter-table.ts";
import type { Schema, SqlDatabase } from "../schema.ts";

/** Maximum number of dead letters that one statement reads. */
const lettersReadMax = 1_000;

type DroppedLetter = Pick<DeadLetterTable, "subscription_id" | "event_id">;

/** Drops and logs dead letters that nobody could deliver: damaged ones, and those without a subscription. */
export async function dropDamagedLetters(database: SqlDatabase, logger: Logger): Promise<readonly DroppedLetter[]> {
  const dropped = [...(await dropDamaged(database)), ...(await dropOrphans(database))];
  for (const { subscription_id: subscriptionId, event_id: eventId } of dropped) {
    const remedy = "replay the subscription from that event";
    logger.error("dead letter dropped: its row in the store is damaged, or its subscription is missing", {
      subscriptionId,
      eventId,
      remedy,
    });
  }
  return dropped;
}

async function dropDamaged(database: SqlDatabase): Promise<readonly DroppedLetter[]> {
  const dropped: DroppedLetter[] = [];
  for (let [id, position] = ["", -1]; ; ) {
    const rows = await sql<DeadLetterTable>`
      select * from dead_letters where (subscription_id, position) > (${id}, ${position})
      order by subscription_id, position limit ${lettersReadMax}`.execute(database.relaxed);
    const last = rows.rows.at(-1);
    if (last === undefined) return dropped;
    [id, position] = [last.subscription_id, last.position];
    for (const row of rows.rows) if (!isIntactLetter(row)) dropped.push(...(await drop(database.durable, row)));
  }
}

async function dropOrphans({ durable }: SqlDatabase): Promise<readonly DroppedLetter[]> {
  const { rows } = await sql<DroppedLetter>`
    delete from dead_letters
    where not exists (select 1 from subscriptions where subscriptions.id = dead_letters.subscription_id)
    returning subscription_id, event_id`.execute(durable);
  return rows;
}

/** Drops a letter, unless another node has changed it since it was read. */
async function drop(
  database: Pick<Transaction<Schema>, "deleteFrom">,
  { subscription_id, position, checksum, attempts }: DeadLetterTable,
): Promise<readonly DroppedLetter[]> {
  return database
    .deleteFrom("dead_letters")
    .where("subscription_id", "=", subscription_id)
    .where("position", "=", position)
    .where("checksum", "=", checksum)
    .where("attempts", "=", attempts)
    .returning(["subscription_id", "event_id"])
    .execute();
}
