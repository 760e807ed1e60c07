import { closeSync, openSync, type Stats } from "node:fs";
import { stat } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { Kysely, sql } from "kysely";
import type { StoredRole } from "../../../domain/access-role.ts";
import { type ApiKeyDatabase, readStoredRoles, SqlApiKeys } from "../sql-api-keys.ts";
import type { ApiKeySchema } from "../sql-key-schema.ts";
import { StoreError } from "../store-error.ts";
import { toStoreError } from "./errors.ts";
import { openNative } from "./native.ts";
import { SqliteSession } from "./session.ts";
import { SqliteDialect } from "./sqlite-dialect.ts";

/** How long work is repeated while another process has the file, and how long after the last time, in milliseconds. */
const busyMsMax = 5000;
const busyPauseMs = 10;

/**
 * Keys in a file of their own: a broker holds the file of its store alone, and the command line changes keys while a broker runs. `onFault` is called
 * when the file is damaged.
 */
export function createSqliteApiKeys(file: string, { onFault = () => {} }: SqliteApiKeysOptions = {}): SqlApiKeys {
  return new SqlApiKeys(() => openShared(file, { onFault }));
}

/** The roles of such a file, which is opened for reading alone. */
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
    native.exec("pragma busy_timeout = 0"); // SQLite would wait on the event loop's thread
    // Without a log beside it, the file can be copied and closed whoever else has it open.
    if (!readOnly) native.exec("pragma journal_mode = delete");
  } catch (error) {
    native.close();
    throw error;
  }
  const session = new SqliteSession(native, { description, onFault: () => {}, keepsLog: () => false });
  const durable = new Kysely<ApiKeySchema>({ dialect: new SqliteDialect(session, "FULL") });
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

/** Where another file has the name, the command line changes that one, and a broker would not learn of a revoked key. */
async function checkSame(file: string, opened: Pick<Stats, "dev" | "ino">): Promise<void> {
  const { dev, ino } = await stat(file);
  if (dev !== opened.dev || ino !== opened.ino) throw new Error(`${file} was replaced: restart the broker`);
}

/** What helps with a damaged store would not: nothing else has the keys. */
function toDamage(cause: unknown, description: string): StoreError {
  const remedy = "restore it from a backup, or move it away, start again, and create every key anew";
  return new StoreError("corrupt", `${description} is damaged: ${remedy}`, cause);
}
