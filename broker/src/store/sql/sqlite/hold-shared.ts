import { setTimeout as pause } from "node:timers/promises";
import { toStoreError } from "./errors.ts";
import { type NativeDatabase, openNative } from "./native.ts";
import { StoreError } from "../store-error.ts";

/** Pause between two tries to lock the file, in milliseconds. */
const againMs = 20;
/** Maximum number of tries to lock the file; a writer locks it for milliseconds. */
const triesMax = 250;

/**
 * Keeps a database without a write-ahead log unchanged until the returned function is called. Other connections may read it, and wait to write.
 * @throws StoreError if the file cannot be read, or stays locked.
 */
export async function holdShared(file: string): Promise<() => void> {
  const database = await openNative(file);
  try {
    for (let tries = 1; !tryHold(database, file, tries === triesMax); tries += 1) await pause(againMs);
  } catch (error) {
    database.close();
    throw error;
  }
  return () => {
    database.exec("commit");
    database.close();
  };
}

/** Tries to lock the file for reading. The statement must read something, since `begin` alone takes no lock. */
function tryHold(database: NativeDatabase, file: string, isLast: boolean): boolean {
  try {
    database.exec("begin; select count(*) from sqlite_schema");
    return true;
  } catch (cause) {
    const error = toStoreError(cause, `keys ${file}`);
    if (database.isTransaction) database.exec("rollback");
    if (isLast || !(error instanceof StoreError) || error.fault !== "locked") throw error;
    return false;
  }
}
