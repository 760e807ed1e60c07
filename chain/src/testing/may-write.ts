import type { DatabaseSyncInstance } from "@photostructure/sqlite";

/** Whether no other program holds the lock for writes to the database's file. */
export function mayWrite(database: DatabaseSyncInstance): boolean {
  try {
    database.exec("BEGIN IMMEDIATE; ROLLBACK");
    return true;
  } catch {
    return false;
  }
}
