import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { ChainFileError } from "../chain-file-error.ts";

/**
 * Opens the file for this process alone. SQLite's exclusive locking mode holds an operating system lock from the first
 * transaction until the database is closed or the process ends, however it ends.
 */
export function openDatabase(file: string): DatabaseSyncInstance {
  const database = openFile(file);
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

function openFile(file: string): DatabaseSyncInstance {
  try {
    return new DatabaseSync(file);
  } catch (cause) {
    throw explain(file, cause);
  }
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
  return new ChainFileError(`The chain file ${file} cannot be opened: ${words}.`, { cause });
}
