import { type Kysely, sql, type Transaction } from "kysely";
import type { StoredRole } from "../../../domain/access-role.ts";
import type { AccessRule } from "../../../domain/access-rule.ts";
import type { ApiKey, ApiKeys, NumberedApiKey, StoredRoles } from "../../../ports/api-keys.ts";
import { checksumOf } from "../../checksum.ts";
import { createRevisions } from "./create-revisions.ts";
import type { ApiKeySchema, ApiKeyTable } from "./sql-key-schema.ts";
import { createRoleTables, deleteRole, putRole, readRoleMark, readRoles, type RoleMark } from "./sql-stored-roles.ts";
import { TablesReplaced } from "./tables-replaced.ts";

/** Once a key has ended this long ago, in milliseconds, its row may be gone. The command line prunes a month after the end, perhaps by another clock. */
const goneAfterMs = 24 * 3_600_000;

/** A database that has the tables of keys and roles, or in which they can be created. */
export interface ApiKeyDatabase {
  /** A commit is on disk when it returns. */
  readonly durable: Kysely<ApiKeySchema>;
  /** Keeps other processes from creating the tables until the transaction ends: in PostgreSQL, one of two concurrent creations fails. */
  readonly lock: (transaction: Transaction<ApiKeySchema>) => Promise<void>;
  /** Rejects if other processes now use another database: their changes would be missed. */
  readonly checkShared?: (() => Promise<void>) | undefined;
  /** Runs `work`, and repeats it while another process locks the database. A failed run is rolled back. */
  readonly whenFree: <Result>(work: () => Promise<Result>) => Promise<Result>;
  /** Whether the tables of roles exist; the first start of a broker or a command creates them. */
  readonly hasRoles: () => Promise<boolean>;
  close(): Promise<void>;
}

/** Reads the roles of a database without changing or creating it. */
export async function readStoredRoles(open: () => Promise<ApiKeyDatabase>): Promise<readonly StoredRole[]> {
  const database = await open();
  const { durable, whenFree, hasRoles } = database;
  try {
    return await whenFree(async () => ((await hasRoles()) ? readRoles(durable) : []));
  } finally {
    await database.close();
  }
}

/** Keys and roles in a database that other processes use too. */
export class SqlApiKeys implements ApiKeys {
  readonly #open: () => Promise<ApiKeyDatabase>;
  #database: ApiKeyDatabase | undefined;
  /**
   * Once set, every read fails. Otherwise later changes could raise the older tables to the revision that was read, and nobody would notice that earlier
   * changes were missed.
   */
  #replaced: TablesReplaced | undefined;
  /** The newest key that was read. If its row changed other than by a revocation, a backup has replaced the tables; see {@link continuesFrom}. */
  #newest: ApiKeyTable | undefined;
  /** The mark of the roles that were read. */
  #roleMark: RoleMark | undefined;

  constructor(open: () => Promise<ApiKeyDatabase>) {
    this.#open = open;
  }

  async start(): Promise<void> {
    const database = await this.#open();
    try {
      await database.whenFree(() =>
        database.durable.transaction().execute(async (transaction) => {
          await database.lock(transaction);
          await createTables(transaction);
          await createRoleTables(transaction);
        }),
      );
      this.#database = database;
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  async stop(): Promise<void> {
    const database = this.#database;
    this.#database = undefined;
    await database?.close();
  }

  async insertApiKey(key: ApiKey, atMost: number): Promise<boolean> {
    return this.#change(async (transaction, revision) => {
      const { count } = await transaction
        .selectFrom("api_keys")
        .select(({ fn }) => fn.countAll<number>().as("count"))
        .where("revoked_at", "is", null)
        .where((row) => row.or([row("expires_at", "is", null), row("expires_at", ">", key.createdAt)]))
        .executeTakeFirstOrThrow();
      if (count >= atMost) return false;
      const { numInsertedOrUpdatedRows } = await transaction
        .insertInto("api_keys")
        .values(toRow({ ...key, revision }))
        .onConflict((conflict) => conflict.column("key_id").doNothing())
        .executeTakeFirstOrThrow();
      return numInsertedOrUpdatedRows === 1n;
    });
  }

  async revokeApiKey(id: string, revokedAt: number): Promise<boolean> {
    let isKnown = false;
    await this.#change(async (transaction, revision) => {
      const row = await transaction.selectFrom("api_keys").selectAll().where("key_id", "=", id).executeTakeFirst();
      isKnown = row !== undefined;
      if (row === undefined || (isIntact(row) && row.revoked_at !== null)) return false;
      // Revokes a damaged row too, and drops its roles, which may not be a list.
      const roles = isIntact(row) ? row.roles : "[]";
      const revoked = withChecksum({ ...row, roles, revoked_at: row.revoked_at ?? revokedAt, revision });
      await transaction.updateTable("api_keys").set(revoked).where("key_id", "=", id).execute();
      return true;
    });
    return isKnown;
  }

  async pruneApiKeys(before: number, { keepsOwners }: { readonly keepsOwners: boolean }): Promise<number> {
    // Finds the newest key of each owner in one pass: to search for a later key row by row would take seconds with thousands of keys.
    const hasLater = sql<boolean>`revision not in (select max(revision) from api_keys group by principal, coalesce(tenant, ''))`;
    return this.#inTurn(async (transaction) => {
      const { numDeletedRows } = await transaction
        .deleteFrom("api_keys")
        .where((row) => row.or([row("expires_at", "<", before), row("revoked_at", "<", before)]))
        .$if(keepsOwners, (query) => query.where(hasLater))
        .executeTakeFirstOrThrow();
      return Number(numDeletedRows);
    });
  }

  async listApiKeys(afterRevision: number): Promise<readonly NumberedApiKey[]> {
    return this.#read(async (durable) => {
      await checkRevision(durable, afterRevision);
      const newest = this.#newest;
      const rows = await durable
        .selectFrom("api_keys")
        .selectAll()
        .where((row) => row.or([row("revision", ">", afterRevision), row("key_id", "=", newest?.key_id ?? "")]))
        .orderBy("revision")
        .execute();
      if (newest !== undefined && !continuesFrom(rows, newest)) throw new TablesReplaced("keys");
      const intact = rows.filter(isIntact);
      this.#newest = intact.at(-1) ?? newest;
      return intact.filter(({ revision }) => revision > afterRevision).map(fromRow);
    });
  }

  async putRole(
    role: { readonly name: string; readonly rules: readonly AccessRule[] },
    atMost: number,
  ): Promise<boolean> {
    return this.#transact((transaction) => putRole(transaction, role, atMost));
  }

  async deleteRole(name: string): Promise<boolean> {
    return this.#transact((transaction) => deleteRole(transaction, name));
  }

  /** Reads the mark first, so that the next call returns changes made during this one. */
  async readRoles(afterRevision: number): Promise<StoredRoles | undefined> {
    return this.#read(async (durable) => {
      const mark = await readRoleMark(durable);
      const { revision, sum } = mark;
      if (revision < afterRevision) throw new TablesReplaced("roles");
      if (revision === afterRevision && sum === (this.#roleMark ?? mark).sum) return undefined;
      const roles = await readRoles(durable);
      this.#roleMark = mark;
      return { revision, roles };
    });
  }

  async #read<Result>(task: (database: Kysely<ApiKeySchema>) => Promise<Result>): Promise<Result> {
    const { durable, whenFree, checkShared } = this.#opened();
    if (this.#replaced !== undefined) throw this.#replaced;
    await checkShared?.();
    try {
      return await whenFree(() => task(durable));
    } catch (error) {
      if (error instanceof TablesReplaced) this.#replaced = error;
      throw error;
    }
  }

  /** Only a change of a row takes a revision, so that a reader of the newest row knows all changes up to it. */
  #change(task: (transaction: Transaction<ApiKeySchema>, revision: number) => Promise<boolean>): Promise<boolean> {
    return this.#inTurn(async (transaction, revision) => {
      const next = Math.max(revision, await newestRevision(transaction)) + 1;
      const isDone = await task(transaction, next);
      if (isDone) await transaction.updateTable("api_key_revisions").set({ revision: next }).execute();
      return isDone;
    });
  }

  /** First writes the revision, unchanged. This write waits until a change by another process is committed, so that `task` sees that change. */
  #inTurn<Result>(
    task: (transaction: Transaction<ApiKeySchema>, revision: number) => Promise<Result>,
  ): Promise<Result> {
    return this.#transact(async (transaction) => {
      const update = transaction.updateTable("api_key_revisions").set({ revision: sql<number>`revision` });
      const { revision } = await update.returning("revision").executeTakeFirstOrThrow();
      return task(transaction, revision);
    });
  }

  #transact<Result>(task: (transaction: Transaction<ApiKeySchema>) => Promise<Result>): Promise<Result> {
    const { durable, whenFree } = this.#opened();
    return whenFree(() => durable.transaction().execute(task));
  }

  #opened(): ApiKeyDatabase {
    if (this.#database === undefined) throw new Error("the keys are not started");
    return this.#database;
  }
}

/** The highest revision of a key; 0 without keys. It exceeds the revision in `api_key_revisions` only if that table is damaged. */
async function newestRevision(database: Kysely<ApiKeySchema>): Promise<number> {
  const newest = database.selectFrom("api_keys").select(({ fn }) => fn.max<number | null>("revision").as("revision"));
  return (await newest.executeTakeFirstOrThrow()).revision ?? 0;
}

/** Throws if an older copy has replaced the tables: the next changes would get revisions that this process has already read. */
async function checkRevision(database: Kysely<ApiKeySchema>, atLeast: number): Promise<void> {
  const { revision } = await database.selectFrom("api_key_revisions").select("revision").executeTakeFirstOrThrow();
  if (revision >= atLeast || (await newestRevision(database)) >= atLeast) return;
  throw new TablesReplaced("keys");
}

async function createTables(database: Kysely<ApiKeySchema>): Promise<void> {
  const { schema } = database;
  await schema
    .createTable("api_keys")
    .ifNotExists()
    .addColumn("key_id", "text", (column) => column.primaryKey().notNull())
    .addColumn("digest", "text", (column) => column.notNull())
    .addColumn("principal", "text", (column) => column.notNull())
    .addColumn("tenant", "text")
    .addColumn("roles", "text", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("expires_at", "bigint")
    .addColumn("revoked_at", "bigint")
    .addColumn("revision", "bigint", (column) => column.notNull())
    .addColumn("checksum", "bigint", (column) => column.notNull())
    .execute();
  await createRevisions(database, "api_key_revisions");
}

function toRow(key: NumberedApiKey): ApiKeyTable {
  return withChecksum({
    key_id: key.id,
    digest: key.digest,
    principal: key.principal,
    tenant: key.tenant ?? null,
    roles: JSON.stringify(key.roles),
    created_at: key.createdAt,
    expires_at: key.expiresAt ?? null,
    revoked_at: key.revokedAt ?? null,
    revision: key.revision,
  });
}

function fromRow(row: ApiKeyTable): NumberedApiKey {
  return {
    id: row.key_id,
    digest: row.digest,
    principal: row.principal,
    tenant: row.tenant ?? undefined,
    roles: JSON.parse(row.roles) as readonly string[], // The checksum shows that it is unchanged.
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
    revision: row.revision,
  };
}

/**
 * Whether the tables continue from the newest key that was read: its row is unchanged, or was revoked since. True if the row cannot tell: it is damaged, or it
 * is gone and the key ended so long ago that it may have been pruned.
 */
function continuesFrom(rows: readonly ApiKeyTable[], newest: ApiKeyTable): boolean {
  const row = rows.find(({ key_id: id }) => id === newest.key_id);
  if (row === undefined) return endOf(newest) < Date.now() - goneAfterMs;
  if (!isIntact(row)) return true;
  if (row.revision === newest.revision) return row.checksum === newest.checksum;
  // A revoked key keeps the time of its revocation. Another time shows that the tables lost this revocation, and got another one later.
  return row.revision > newest.revision && (newest.revoked_at ?? row.revoked_at) === row.revoked_at;
}

function endOf({ revoked_at: revokedAt, expires_at: expiresAt }: ApiKeyTable): number {
  return Math.min(revokedAt ?? Infinity, expiresAt ?? Infinity);
}

function isIntact(row: ApiKeyTable): boolean {
  return withChecksum(row).checksum === row.checksum;
}

function withChecksum(row: Omit<ApiKeyTable, "checksum">): ApiKeyTable {
  const { key_id, digest, principal, tenant, roles, created_at, expires_at, revoked_at, revision } = row;
  const columns = [key_id, digest, principal, tenant, roles, created_at, expires_at, revoked_at, revision];
  return {
    key_id,
    digest,
    principal,
    tenant,
    roles,
    created_at,
    expires_at,
    revoked_at,
    revision,
    checksum: checksumOf(columns),
  };
}
