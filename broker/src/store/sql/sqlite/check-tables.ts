import { type Kysely, type RawBuilder, sql } from "kysely";
import { type IndexFinding, type IndexTable, indexTables } from "../index/index-tables.ts";
import type { Schema } from "../schema.ts";
import { corruptFile, lostRows } from "./errors.ts";

type Check = RawBuilder<{ readonly integrity_check: string }>;

/** Maximum number of lost rows that an error names. */
const lostRowsNamedMax = 10;

/**
 * Compares every table with its database indexes: the checksums of rows do not cover these. If the disk lost the write of a page, a table is older than its
 * indexes, or the reverse. Rebuilding the indexes would hide that rows are lost. Skips `batches`: SqlBatches notices if a database index lacks a batch. Returns
 * the first damage that it finds in `indexTables`, which the chain can restore. @throws StoreError `corrupt` if another table is damaged.
 */
export async function checkTables(database: Kysely<Schema>, description: string): Promise<IndexFinding | undefined> {
  const tables = sql<{ name: string }>`
    select name from sqlite_schema where type = 'table' and name <> 'batches' and name not like 'sqlite_%'`;
  let finding: IndexFinding | undefined;
  for (const { name: table } of (await tables.execute(database)).rows) {
    const found = await findDisagreement(database, table);
    if (found === undefined) continue;
    if (!isIndexTable(table)) throw lostRows(description, { table, found, lost: await findLostKeys(database, table) });
    finding ??= { table, found };
  }
  return finding;
}

/** See `SqlDatabase.checkEmptied`. */
export async function checkEmptied(database: Kysely<Schema>, description: string): Promise<void> {
  const found = await firstFinding(database, sql`pragma integrity_check`);
  if (found !== undefined) throw corruptFile(description, found);
}

function isIndexTable(table: string): table is IndexTable {
  return (indexTables as readonly string[]).includes(table);
}

async function findDisagreement(database: Kysely<Schema>, table: string): Promise<string | undefined> {
  return firstFinding(database, sql`pragma integrity_check(${sql.raw(table)})`);
}

async function firstFinding(database: Kysely<Schema>, check: Check): Promise<string | undefined> {
  const first = (await check.execute(database)).rows[0]?.integrity_check;
  return first === "ok" ? undefined : first;
}

/** Keys that are in the index of the primary key but not in the table. */
async function findLostKeys(database: Kysely<Schema>, table: string): Promise<readonly string[]> {
  const keys = sql<{ name: string; column: string }>`
    select list.name as name, info.name as "column" from pragma_index_list(${table}) list, pragma_index_info(list.name) info
    where list.origin = 'pk' order by info.seqno`;
  const { rows } = await keys.execute(database);
  const [first] = rows;
  if (first === undefined) return [];
  const columns = sql.join(rows.map(({ column }) => sql.ref(column)));
  const lost = sql<Readonly<Record<string, unknown>>>`
    select ${columns} from ${sql.table(table)} indexed by ${sql.ref(first.name)}
    except select ${columns} from ${sql.table(table)} not indexed limit ${lostRowsNamedMax}`;
  return (await lost.execute(database)).rows.map((row) => Object.values(row).join(" "));
}
