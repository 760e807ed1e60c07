import { setTimeout as pause } from "node:timers/promises";
import { toStoreError } from "./errors.ts";
import { type NativeDatabase, openNative } from "./native.ts";
import { StoreError } from "../store-error.ts";

/** Pause before a file that is being written is tried again, in milliseconds. */
const againMs = 20;
/** Tries: a writer has the file for milliseconds. */
const triesMax = 250;

/**
 * Keeps a database without a write-ahead log as it is until the returned function is called: whoever has it open may read, and waits to write.
 * @throws StoreError.
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

/** Reads something: only that takes the lock. */
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
