import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import { ChainFileError } from "../chain-file-error.ts";

/**
 * Opens the file for this process alone. SQLite's exclusive locking mode holds an operating system lock from the first
 * transaction until the database is closed or the process ends, however it ends.
 */
export async function openDatabase(file: string): Promise<DatabaseSyncInstance> {
  const database = await openFile(file);
  try {
    database.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA busy_timeout = 0;");
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;");
    database.exec("BEGIN IMMEDIATE; COMMIT;");
    return database;
  } catch (cause) {
    database.close();
    throw explain(file, cause);
  }
}

interface SqliteModule {
  readonly DatabaseSync: new (file: string) => DatabaseSyncInstance;
}

/** The first line of Node that has its own SQLite without a flag from the start. */
const NODE_MAJOR_MIN = 24;

async function openFile(file: string): Promise<DatabaseSyncInstance> {
  const { DatabaseSync } = await loadSqlite();
  try {
    return new DatabaseSync(file);
  } catch (cause) {
    throw explain(file, cause);
  }
}

/** Node's own SQLite, or the package of the same interface where Node has none that is fit. */
async function loadSqlite(): Promise<SqliteModule> {
  const isNodeFit = Number(process.versions.node.split(".")[0]) >= NODE_MAJOR_MIN;
  const module: unknown = isNodeFit ? process.getBuiltinModule("node:sqlite") : await import("@photostructure/sqlite");
  return module as SqliteModule; // both have it, in the same shape
}

export function explain(file: string, cause: unknown): ChainFileError {
  const words = cause instanceof Error ? cause.message : String(cause);
  if (/locked|busy/i.test(words)) {
    return new ChainFileError(
      `The chain file ${file} is in use by another process. Stop that one first, or use another file.`,
      { cause },
    );
  }
  if (/not a database|malformed|corrupt/i.test(words)) {
    return new ChainFileError(
      `The file ${file} is not a chain, or it is damaged (${words}). Restore it from a backup.`,
      { cause },
    );
  }
  if (/disk is full/i.test(words)) {
    return new ChainFileError(`The chain file ${file} cannot grow, the disk is full (${words}). Free some space.`, {
      cause,
    });
  }
  return new ChainFileError(`The chain file ${file} cannot be opened: ${words}.`, { cause });
}
