import { type Kysely, sql, type Transaction } from "kysely";
import { isRoleName, readRules, type StoredRole } from "../../../domain/access-role.ts";
import type { AccessRule } from "../../../domain/access-rule.ts";
import { createLoopSlices } from "../../../lib/system/loop-slices.ts";
import { inSlices } from "../../../lib/time-slices.ts";
import { checksumOf } from "../../checksum.ts";
import { createRevisions } from "./create-revisions.ts";
import type { ApiKeySchema, RoleTable } from "./sql-key-schema.ts";

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
  // Without it, SQLite reads all rules for the sum of the checksums, several times a second.
  await schema.createIndex("access_roles_by_checksum").ifNotExists().on("access_roles").column("checksum").execute();
  await createRevisions(database, "access_role_revisions");
}

/** See `ApiKeys.putRole`. */
export async function putRole(
  transaction: Transaction<ApiKeySchema>,
  { name, rules }: { readonly name: string; readonly rules: readonly AccessRule[] },
  atMost: number,
): Promise<boolean> {
  const revision = (await currentRevision(transaction)) + 1;
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
  await setRevision(transaction, revision);
  return true;
}

/** See `ApiKeys.deleteRole`. */
export async function deleteRole(transaction: Transaction<ApiKeySchema>, name: string): Promise<boolean> {
  const revision = await currentRevision(transaction);
  const { numDeletedRows } = await transaction
    .deleteFrom("access_roles")
    .where("name", "=", name)
    .executeTakeFirstOrThrow();
  if (numDeletedRows === 0n) return false;
  await setRevision(transaction, revision + 1);
  return true;
}

/** Differs between two tables of roles, even if both have had the same number of changes, for example after a restore. */
export interface RoleMark {
  readonly revision: number;
  /** Sum of the rows' checksums. */
  readonly sum: string | null;
}

export async function readRoleMark(database: Kysely<ApiKeySchema>): Promise<RoleMark> {
  const sum = sql<string | null>`(select cast(sum(checksum) as text) from access_roles)`.as("sum");
  return database.selectFrom("access_role_revisions").select(["revision", sum]).executeTakeFirstOrThrow();
}

/** All roles, in the order of their names. Parses them in slices: a rule takes 10 µs, and there may be 100,000. */
export async function readRoles(database: Kysely<ApiKeySchema>): Promise<readonly StoredRole[]> {
  const rows = await database.selectFrom("access_roles").selectAll().execute();
  const roles: StoredRole[] = [];
  await inSlices(rows.filter(hasName), createLoopSlices(), (row) => void roles.push(fromRow(row)));
  return roles.toSorted((left, right) => (left.name < right.name ? -1 : 1));
}

/** Returns the revision, and writes it unchanged. This write waits until a change by another process is committed, so that the caller sees that change. */
async function currentRevision(transaction: Transaction<ApiKeySchema>): Promise<number> {
  const update = transaction.updateTable("access_role_revisions").set({ revision: sql<number>`revision` });
  return (await update.returning("revision").executeTakeFirstOrThrow()).revision;
}

async function setRevision(transaction: Transaction<ApiKeySchema>, revision: number): Promise<void> {
  await transaction.updateTable("access_role_revisions").set({ revision }).execute();
}

/** Whether a row has a valid name. A row without one is ignored, so its former role grants nothing. */
function hasName({ name }: { readonly name: unknown }): boolean {
  return typeof name === "string" && isRoleName(name);
}

function fromRow(row: RoleTable): StoredRole {
  const isAsWritten = typeof row.rules === "string" && withChecksum(row).checksum === row.checksum;
  return { name: row.name, rules: isAsWritten ? parseRules(row.rules) : undefined };
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
