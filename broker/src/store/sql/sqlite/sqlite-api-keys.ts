import { closeSync, openSync, type Stats } from "node:fs";
import { stat } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { Kysely, sql } from "kysely";
import type { StoredRole } from "../../../domain/access-role.ts";
import { type ApiKeyDatabase, readStoredRoles, SqlApiKeys } from "../access/sql-api-keys.ts";
import type { ApiKeySchema } from "../access/sql-key-schema.ts";
import { StoreError } from "../store-error.ts";
import { toStoreError } from "./errors.ts";
import { openNative } from "./native.ts";
import { SqliteSession } from "./session.ts";
import { createSqliteDialect } from "./sqlite-dialect.ts";

/** Longest time to repeat work while another process locks the file, in milliseconds. */
const busyMsMax = 5000;
/** Pause between two tries, in milliseconds. */
const busyPauseMs = 10;

/**
 * Keys in a separate file: a running broker locks the file of its store, and the command line must be able to change keys meanwhile. Calls `onFault`
 * when the file is damaged.
 */
export function createSqliteApiKeys(file: string, { onFault = () => {} }: SqliteApiKeysOptions = {}): SqlApiKeys {
  return new SqlApiKeys(() => openShared(file, { onFault }));
}

/** Reads the roles in a file of keys, which it opens read-only. */
export function readSqliteRoles(file: string): Promise<readonly StoredRole[]> {
  return readStoredRoles(() => openShared(file, { readOnly: true }));
}

interface SqliteApiKeysOptions {
  readonly onFault?: ((error: StoreError) => void) | undefined;
}

async function openShared(
  file: string,
  { readOnly = false, onFault = () => {} }: SqliteApiKeysOptions & { readonly readOnly?: boolean },
): Promise<ApiKeyDatabase> {
  const description = `keys ${file}`;
  const whenFree = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    try {
      return await repeatWhileBusy(work);
    } catch (error) {
      if (!(error instanceof StoreError) || error.fault !== "corrupt") throw error;
      const damage = toDamage(error, description);
      onFault(damage);
      throw damage;
    }
  };
  const opened = await whenFree(async () => {
    try {
      return await open(file, { description, readOnly });
    } catch (error) {
      throw toStoreError(error, description);
    }
  });
  return { ...opened, whenFree, close: () => whenFree(() => opened.close()) };
}

async function open(
  file: string,
  { description, readOnly }: { readonly description: string; readonly readOnly: boolean },
): Promise<Omit<ApiKeyDatabase, "whenFree">> {
  if (!readOnly) closeSync(openSync(file, "a", 0o600));
  const opened = await stat(file);
  const native = await openNative(file, { readOnly });
  try {
    native.exec("pragma busy_timeout = 0"); // SQLite would wait on the event loop's thread.
    // Without a write-ahead log, the file can be copied and closed while others have it open.
    if (!readOnly) native.exec("pragma journal_mode = delete");
  } catch (error) {
    native.close();
    throw error;
  }
  const session = new SqliteSession(native, { description, onFault: () => {}, keepsLog: () => false });
  const durable = new Kysely<ApiKeySchema>({ dialect: createSqliteDialect(session, "FULL", "slow") });
  const checkShared = (): Promise<void> => checkSame(file, opened);
  const hasRoles = async (): Promise<boolean> => {
    const found = await sql`select name from sqlite_master where name = 'access_roles'`.execute(durable);
    return found.rows.length > 0;
  };
  return { durable, lock: async () => {}, checkShared, hasRoles, close: () => session.close() };
}

async function repeatWhileBusy<Result>(work: () => Promise<Result>): Promise<Result> {
  const until = performance.now() + busyMsMax;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const fault = error instanceof StoreError ? error.fault : "other";
      if (fault !== "locked" || performance.now() > until) throw error;
      await setTimeout(busyPauseMs);
    }
  }
}

/** Rejects if the name has another file now, or none: the command line changes that file, and the broker would miss a revoked key. */
async function checkSame(file: string, opened: Pick<Stats, "dev" | "ino">): Promise<void> {
  const { dev, ino } = await stat(file);
  if (dev !== opened.dev || ino !== opened.ino) throw new Error(`${file} was replaced: restart the broker`);
}

/** The error for a damaged file of keys. The remedy differs from that of a store: the chain cannot restore keys. */
function toDamage(cause: unknown, description: string): StoreError {
  const remedy = "restore it from a backup, or move it away, start again, and create every key again";
  return new StoreError("corrupt", `${description} is damaged: ${remedy}`, cause);
}
