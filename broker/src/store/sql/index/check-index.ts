import { sql, type Transaction } from "kysely";
import type { GroupId } from "../../../domain/group-id.ts";
import { findContradiction } from "./find-contradiction.ts";
import { type IndexFinding, type IndexTable, indexTables } from "./index-tables.ts";
import { checksumOfRow, withChecksum } from "../row-checksums.ts";
import { indexLock } from "./sql-index.ts";
import { undoReadMax } from "./sql-rollback.ts";
import type { GroupTable, Schema, SqlDatabase } from "../schema.ts";

/** Maximum number of topics, or of retained events, that one statement reads. */
const rowsReadMax = 1_000;

/**
 * Verifies the rows on which the rest of the index depends, and that its tables fit each other. If they are damaged, it empties the index, which the
 * follower then rebuilds from the chain; subscriptions keep their cursors. Returns why it emptied the index; undefined if it did not. If `beforeEmptying`
 * throws, nothing changes.
 * @throws StoreError `corrupt` if SQLite finds damage that emptying the index does not remove.
 */
export async function emptyDamagedIndex(
  database: SqlDatabase,
  beforeEmptying: (finding: IndexFinding) => Promise<void> = async () => {},
): Promise<IndexFinding | undefined> {
  const { migrating, lock, notify, checkTables, checkEmptied, isShared } = database;
  if (isShared && !(await isDamaged(database))) return undefined;
  return migrating.transaction().execute(async (transaction) => {
    await lock(transaction, "check of the index");
    const disagreement = await checkTables(transaction);
    const known = await transaction.selectFrom("groups").select("group_id").orderBy("group_id").execute();
    for (const { group_id } of known) await lock(transaction, indexLock(group_id));
    const finding = disagreement ?? (await findDamage(transaction)) ?? (await findContradiction(transaction));
    if (finding === undefined) return undefined;
    await beforeEmptying(finding);
    const groups = await transaction.selectFrom("groups").selectAll().execute();
    for (const table of indexTables) await transaction.deleteFrom(table).execute();
    for (const group of groups) await transaction.insertInto("groups").values(emptied(group)).execute();
    const hints = groups.map(({ group_id }) => ({ kind: "index", groupId: group_id as GroupId }) as const); // No node knows a damaged identifier.
    await notify(transaction, hints);
    await checkEmptied(transaction);
    return finding;
  });
}

/** Checks a snapshot of the index, without locks: the check takes seconds if there are many topics, and other nodes write the index meanwhile. */
async function isDamaged({ migrating }: SqlDatabase): Promise<boolean> {
  return migrating.transaction().execute(async (transaction) => {
    await sql`set transaction isolation level repeatable read, read only`.execute(transaction);
    return ((await findDamage(transaction)) ?? (await findContradiction(transaction))) !== undefined;
  });
}

/** The group's row for an empty index. Its new generation makes the nodes that watch the index restart their readers. */
function emptied({ group_id, generation }: GroupTable): GroupTable {
  return withChecksum("groups", {
    group_id,
    block_number: -1,
    block_hash: "",
    generation: generation + 1,
    batch_count: 0,
  });
}

async function findDamage(transaction: Transaction<Schema>): Promise<IndexFinding | undefined> {
  for (const table of ["groups", "vanished", "skipped_entries"] as const) {
    const rows = await transaction.selectFrom(table).selectAll().execute();
    if (rows.some((row) => checksumOfRow(table, row) !== row.checksum)) return damagedRow(table);
  }
  if (!(await hasIntactBlocks(transaction))) return damagedRow("blocks");
  if (!(await hasIntactTopics(transaction))) return damagedRow("topics");
  return (await hasIntactRetained(transaction)) ? undefined : damagedRow("retained");
}

function damagedRow(table: IndexTable): IndexFinding {
  return { table, found: "a row does not match its checksum" };
}

async function hasIntactBlocks(transaction: Transaction<Schema>): Promise<boolean> {
  for (let [group, number] = ["", -1]; ; ) {
    const blocks = transaction.selectFrom("blocks").selectAll();
    const rest = blocks.where(sql<boolean>`(group_id, number) > (${group}, ${number})`);
    const rows = await rest.orderBy("group_id").orderBy("number").limit(undoReadMax).execute();
    if (rows.some((row) => checksumOfRow("blocks", row) !== row.checksum)) return false;
    const last = rows.at(-1);
    if (last === undefined) return true;
    [group, number] = [last.group_id, last.number];
  }
}

async function hasIntactTopics(transaction: Transaction<Schema>): Promise<boolean> {
  for (let after = 0; ; ) {
    const topics = transaction.selectFrom("topics").selectAll().where("topic_id", ">", after);
    const rows = await topics.orderBy("topic_id").limit(rowsReadMax).execute();
    if (rows.some((row) => checksumOfRow("topics", row) !== row.checksum)) return false;
    const last = rows.at(-1);
    if (last === undefined) return true;
    after = last.topic_id;
  }
}

async function hasIntactRetained(transaction: Transaction<Schema>): Promise<boolean> {
  for (let [group, name] = ["", ""]; ; ) {
    const retained = transaction.selectFrom("retained").selectAll();
    const rest = retained.where(sql<boolean>`(group_id, name) > (${group}, ${name})`);
    const rows = await rest.orderBy("group_id").orderBy("name").limit(rowsReadMax).execute();
    if (rows.some((row) => checksumOfRow("retained", row) !== row.checksum)) return false;
    const last = rows.at(-1);
    if (last === undefined) return true;
    [group, name] = [last.group_id, last.name];
  }
}
