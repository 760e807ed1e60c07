import { closeSync, fstatSync, openSync } from "node:fs";
import { Kysely, type RawBuilder, sql } from "kysely";
import { isMoved, LostFileError, type OpenFile } from "../../../lib/system/open-file.ts";
import type { TopicPosition } from "../../../ports/store.ts";
import type { Schema, SqlBackend, SqlDatabase } from "../schema.ts";
import { StoreError } from "../store-error.ts";
import { checkEmptied, checkTables } from "./check-tables.ts";
import { damagedIndex, toStoreError } from "./errors.ts";
import { type NativeDatabase, openNative } from "./native.ts";
import { ProgressWriter } from "./progress-writer.ts";
import { createRowWriter } from "./row-writer.ts";
import { leaveOpen, logPagesMax, SqliteSession, type SqliteSessionOptions } from "./session.ts";
import { createSqliteDialect } from "./sqlite-dialect.ts";

/** Size in bytes to which SQLite truncates the file of the write-ahead log after a burst. */
const walBytesKept = 16 * 1024 * 1024;

const pageCacheKibibytes = 16 * 1024;

/** SQLite in one file, for one process. */
export function createSqliteBackend(
  file: string,
  { onFault = () => {}, keepsLog = () => false }: Partial<Omit<SqliteSessionOptions, "description">> = {},
): SqlBackend {
  const description = `store ${file}`;
  const open = async (): Promise<SqlDatabase> => openSqlite(file, { description, onFault, keepsLog });
  return { description, bytesType: "blob", keyType: "integer", orderedTextType: "text", open };
}

async function openSqlite(file: string, options: SqliteSessionOptions): Promise<SqlDatabase> {
  const { description, onFault, keepsLog } = options;
  const opened = createPrivately(file, description);
  const native = await openConfigured(file, options);
  // SQLite finds the log by the path: if another file is at the path now, closing this one would delete the log of the other.
  const session = new SqliteSession(native, { ...options, keepsLog: () => keepsLog() || isMoved(opened) });
  const durable = new Kysely<Schema>({ dialect: createSqliteDialect(session, "FULL", "slow") });
  const urgent = new Kysely<Schema>({ dialect: createSqliteDialect(session, "FULL", "quick") });
  const relaxed = new Kysely<Schema>({ dialect: createSqliteDialect(session, "NORMAL", "quick") });
  const progress = new ProgressWriter(relaxed);
  return {
    durable,
    urgent,
    relaxed,
    migrating: durable,
    isShared: false,
    // Nothing to lock: transactions take turns on one connection, and no other process can open the file.
    lock: async () => {},
    lockAll: async () => {},
    locking: (query) => query,
    holdLease: async () => true,
    notify: async () => {},
    byBytes: (column) => sql.ref<string>(column),
    column: (values) => sql<string>`(select value from json_each(${JSON.stringify(values)}))`,
    places: placesTable,
    rowWriter: createRowWriter(session, relaxed),
    saveProgress: async (rows, letters) => progress.save(rows, letters),
    checkTables: async (transaction) => checkTables(transaction, description),
    checkEmptied: async (transaction) => checkEmptied(transaction, description),
    reindexBatches: async (transaction) => void (await sql`reindex batches`.execute(transaction ?? durable)),
    file: {
      opened,
      hold: async (meanwhile) => session.hold(meanwhile),
      release: async () => session.setLogPages(logPagesMax),
    },
    damaged: (what) => {
      const error = damagedIndex(description, what);
      onFault(error);
      return error;
    },
    close: async () => {
      await session.close();
      if (keepsLog()) return;
      if (isMoved(opened)) throw new LostFileError(file);
      await setWalMode(file);
    },
  };
}

function placesTable(places: readonly TopicPosition[]): RawBuilder<unknown> {
  const pairs = JSON.stringify(places.map(({ topic, after }) => [topic, after]));
  return sql`(
    select json_extract(value, '$[0]') as topic, json_extract(value, '$[1]') as after, key as place from json_each(${pairs})
  )`;
}

/**
 * Creates the file, if it is missing, so that only its owner may read it: it holds events and encrypted secrets. SQLite gives the write-ahead log the
 * same permissions. @throws StoreError `cannot-open`.
 */
function createPrivately(path: string, description: string): OpenFile {
  try {
    const opened = openSync(path, "a", 0o600);
    const { dev, ino } = fstatSync(opened);
    closeSync(opened);
    return { path, dev, ino };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StoreError("cannot-open", `${description} cannot be created or written: ${reason}`, error);
  }
}

async function openConfigured(file: string, { description, keepsLog }: SqliteSessionOptions): Promise<NativeDatabase> {
  let native: NativeDatabase | undefined;
  try {
    native = await openNative(file);
    configure(native);
    return native;
  } catch (error) {
    if (native !== undefined && keepsLog()) leaveOpen(native);
    else native?.close();
    throw toStoreError(error, description);
  }
}

/**
 * Sets WAL mode again, so that the next opening writes nothing. The mode is stored in the file, and SqliteSession leaves WAL mode when it
 * closes, to release the file. If that fails, for example on a full disk or without the right to open the file, the next opening sets the mode.
 */
async function setWalMode(file: string): Promise<void> {
  let native: NativeDatabase | undefined;
  try {
    native = await openNative(file);
    native.exec("pragma journal_mode = wal");
  } catch {
    return; // Everything is stored already.
  } finally {
    native?.close();
  }
}

/** Sets exclusive locking first: then the first access takes the lock, before the log opens, and keeps it until the database or the process closes. */
function configure(native: NativeDatabase): void {
  native.exec("pragma locking_mode = exclusive");
  native.exec("pragma journal_mode = wal");
  native.exec("pragma synchronous = full");
  native.exec("begin exclusive; commit");
  native.exec(`pragma wal_autocheckpoint = ${logPagesMax}`);
  native.exec(`pragma journal_size_limit = ${walBytesKept}`);
  native.exec(`pragma cache_size = -${pageCacheKibibytes}`);
}
