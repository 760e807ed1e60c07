import type { Transaction } from "kysely";
import type { GroupId } from "../../../domain/group-id.ts";
import { fromStored, type Position } from "../../../domain/position.ts";
import type { TopicName } from "../../../domain/topic-name.ts";
import { chunksOf } from "../../../lib/chunks.ts";
import type { RetainedChange, RetainedEvent, RetainedPage, RetainedPlace } from "../../../ports/store.ts";
import { pagesOf } from "../pages.ts";
import { checkRow, withChecksum } from "../row-checksums.ts";
import type { RetainedTable, Schema, SqlDatabase } from "../schema.ts";

/** Number of topics that one statement looks up or deletes. */
const topicsAtOnce = 500;

/** A character that sorts after every character that a topic name may contain; the last of those is U+0080. */
const afterEveryName = "\u00ff";

/** The retained events of topics. Sends no query if `names` is empty. */
export async function findRetained(
  database: SqlDatabase,
  transaction: Transaction<Schema>,
  { groupId, names }: { readonly groupId: GroupId; readonly names: readonly TopicName[] },
): Promise<ReadonlyMap<TopicName, RetainedPlace>> {
  const found = new Map<TopicName, RetainedPlace>();
  for (const some of chunksOf(names, topicsAtOnce)) {
    const rows = await rowsOf(transaction, groupId).where("name", "in", database.column(some)).execute();
    for (const row of rows) {
      const { topic, sequence, position } = fromRow(checkRow(database, "retained", row));
      found.set(topic, { sequence, position });
    }
  }
  return found;
}

/** Writes the retained events of topics. Sends no statement if nothing changes. */
export async function saveRetained(
  database: SqlDatabase,
  transaction: Transaction<Schema>,
  { groupId, changes }: { readonly groupId: GroupId; readonly changes: readonly RetainedChange[] },
): Promise<void> {
  const rows: RetainedTable[] = [];
  const removed: TopicName[] = [];
  for (const { name, retained } of changes) {
    if (retained === undefined) removed.push(name);
    else rows.push(withChecksum("retained", { group_id: groupId, name, ...retained }));
  }
  for (const page of pagesOf(rows)) {
    await transaction
      .insertInto("retained")
      .values(page)
      .onConflict((conflict) =>
        conflict.columns(["group_id", "name"]).doUpdateSet((row) => ({
          sequence: row.ref("excluded.sequence"),
          position: row.ref("excluded.position"),
          checksum: row.ref("excluded.checksum"),
        })),
      )
      .execute();
  }
  for (const some of chunksOf(removed, topicsAtOnce)) {
    const deleted = transaction.deleteFrom("retained").where("group_id", "=", groupId);
    await deleted.where("name", "in", database.column(some)).execute();
  }
}

/** Restores the retained events as of `end`; undefined means before every event. */
export async function restoreRetained(
  database: SqlDatabase,
  transaction: Transaction<Schema>,
  cut: {
    readonly groupId: GroupId;
    readonly end: Position | undefined;
    readonly images: readonly RetainedChange[];
  },
): Promise<void> {
  const { groupId, end, images } = cut;
  if (end === undefined) await transaction.deleteFrom("retained").where("group_id", "=", groupId).execute();
  await saveRetained(database, transaction, { groupId, changes: images });
}

export async function listRetained(
  database: SqlDatabase,
  groupId: GroupId,
  { prefix, after, limit }: RetainedPage,
): Promise<readonly RetainedEvent[]> {
  const begun = rowsOf(database.relaxed, groupId)
    .where("name", ">=", prefix)
    .where("name", "<", prefix + afterEveryName);
  const rest = after === undefined ? begun : begun.where("name", ">", after);
  const rows = await rest.orderBy("name").limit(limit).execute();
  return rows.map((row) => fromRow(checkRow(database, "retained", row)));
}

function rowsOf(database: Pick<Transaction<Schema>, "selectFrom">, groupId: GroupId) {
  return database.selectFrom("retained").selectAll().where("group_id", "=", groupId);
}

function fromRow({ name, sequence, position }: RetainedTable): RetainedEvent {
  return { topic: name as TopicName, sequence, position: fromStored(position) }; // Unchanged since it was stored.
}
