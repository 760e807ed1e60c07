import { type Kysely, sql, type Transaction } from "kysely";
import { isRoleName, readRules, type StoredRole } from "../../../domain/access-role.ts";
import type { AccessRule } from "../../../domain/access-rule.ts";
import type { RoleChanges } from "../../../ports/api-keys.ts";
import { checksumOf } from "../../checksum.ts";
import type { ApiKeySchema, RoleTable } from "./sql-key-schema.ts";
import { TablesReplaced } from "./tables-replaced.ts";

export async function createRoleTables(database: Kysely<ApiKeySchema>): Promise<void> {
  const { schema } = database;
  await schema
    .createTable("access_roles")
    .ifNotExists()
    .addColumn("name", "text", (column) => column.primaryKey().notNull())
    .addColumn("rules", "text", (column) => column.notNull())
    .addColumn("revision", "bigint", (column) => column.notNull())
    .addColumn("checksum", "bigint", (column) => column.notNull())
    .execute();
  await schema
    .createTable("access_role_revisions")
    .ifNotExists()
    .addColumn("only", "integer", (column) => column.primaryKey().notNull())
    .addColumn("revision", "bigint", (column) => column.notNull())
    .execute();
  await database
    .insertInto("access_role_revisions")
    .values({ only: 1, revision: 0 })
    .onConflict((conflict) => conflict.column("only").doNothing())
    .execute();
}

/** See `ApiKeys.putRole`. */
export async function putRole(
  transaction: Transaction<ApiKeySchema>,
  { name, rules }: { readonly name: string; readonly rules: readonly AccessRule[] },
  atMost: number,
): Promise<boolean> {
  const revision = await nextRevision(transaction);
  const { count } = await transaction
    .selectFrom("access_roles")
    .select(({ fn }) => fn.countAll<number>().as("count"))
    .where("name", "!=", name)
    .executeTakeFirstOrThrow();
  if (count >= atMost) return false;
  const row = withChecksum({ name, rules: JSON.stringify(rules), revision });
  await transaction
    .insertInto("access_roles")
    .values(row)
    .onConflict((conflict) => conflict.column("name").doUpdateSet(row))
    .execute();
  return true;
}

/** See `ApiKeys.deleteRole`. */
export async function deleteRole(transaction: Transaction<ApiKeySchema>, name: string): Promise<boolean> {
  await nextRevision(transaction);
  const { numDeletedRows } = await transaction
    .deleteFrom("access_roles")
    .where("name", "=", name)
    .executeTakeFirstOrThrow();
  return numDeletedRows > 0n;
}

/** See `ApiKeys.readRoles`. Reads the revision first, so that the next call returns changes made during this one. */
export async function readRoles(database: Kysely<ApiKeySchema>, after: number): Promise<RoleChanges | undefined> {
  const { revision } = await database.selectFrom("access_role_revisions").select("revision").executeTakeFirstOrThrow();
  if (revision === after) return undefined;
  if (revision < after) throw new TablesReplaced("roles");
  const named = await database.selectFrom("access_roles").select("name").execute();
  const all = database.selectFrom("access_roles").selectAll();
  const rows = await (after === 0 ? all : all.where("revision", ">", after)).execute();
  const changed = rows.filter(hasName).map(fromRow);
  return {
    revision,
    names: new Set(named.filter(hasName).map(({ name }) => name)),
    changed: changed.toSorted((left, right) => (left.name < right.name ? -1 : 1)),
  };
}

async function nextRevision(transaction: Transaction<ApiKeySchema>): Promise<number> {
  const { revision } = await transaction
    .updateTable("access_role_revisions")
    .set({ revision: sql<number>`revision + 1` })
    .returning("revision")
    .executeTakeFirstOrThrow();
  return revision;
}

/** Whether a row has a valid name. A row without one is ignored, so its former role grants nothing. */
function hasName({ name }: { readonly name: unknown }): boolean {
  return typeof name === "string" && isRoleName(name);
}

function fromRow(row: RoleTable): StoredRole {
  const isWhole = typeof row.rules === "string" && withChecksum(row).checksum === row.checksum;
  return { name: row.name, rules: isWhole ? parseRules(row.rules) : undefined };
}

/** Validates the rules although the checksum matches: anyone who can write to the table can compute a checksum. */
function parseRules(text: string): readonly AccessRule[] | undefined {
  try {
    return readRules(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function withChecksum({ name, rules, revision }: Omit<RoleTable, "checksum">): RoleTable {
  return { name, rules, revision, checksum: checksumOf([name, rules, revision]) };
}
