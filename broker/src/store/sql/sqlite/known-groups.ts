import { existsSync, rmSync } from "node:fs";
import { toStoreError } from "./errors.ts";
import { type NativeDatabase, openNative } from "./native.ts";

/** The groups that a store's file contains. */
export interface KnownGroups {
  /** The newest indexed block of each group. */
  readonly indexed: ReadonlyMap<string, number>;
  /** Groups whose chain is recorded, or whose journal has transactions: this store's broker has signed for them, or was about to. */
  readonly signed: ReadonlySet<string>;
}

/** Files that SQLite keeps beside a database. A read may create them. */
const sidecars = ["-wal", "-shm"];

/**
 * Reads the groups of a store's file and leaves the folder unchanged. A broker of another version may have written the file. Call it only while no other
 * process can use the folder.
 * @throws StoreError if the file is not a database, or cannot be read.
 */
export async function readKnownGroups(file: string): Promise<KnownGroups> {
  const made = sidecars.map((suffix) => `${file}${suffix}`).filter((sidecar) => !existsSync(sidecar));
  let database: NativeDatabase | undefined;
  try {
    database = await openNative(file, { readOnly: true });
    return readFrom(database);
  } catch (error) {
    throw toStoreError(error, `store ${file}`);
  } finally {
    database?.close();
    for (const sidecar of made) rmSync(sidecar, { force: true });
  }
}

function readFrom(database: NativeDatabase): KnownGroups {
  const schema = readPairs(database, { text: "name", number: "0", from: "sqlite_schema where type = 'table'" });
  const tables = new Set(schema.map(([name]) => name));
  const groupsIn = (table: string, number: string) =>
    tables.has(table) ? readPairs(database, { text: "group_id", number, from: table }) : [];
  return {
    indexed: new Map(groupsIn("groups", "block_number")),
    signed: new Set([...groupsIn("group_chains", "0"), ...groupsIn("journal", "0")].map(([groupId]) => groupId)),
  };
}

/** Reads rows through an SQL function: a prepared statement would keep the file open and locked until it is garbage-collected. */
function readPairs(
  database: NativeDatabase,
  { text, number, from }: { readonly text: string; readonly number: string; readonly from: string },
): readonly (readonly [string, number])[] {
  const pairs: (readonly [string, number])[] = [];
  database.function("take_pair", (first, second) => {
    pairs.push([String(first), Number(second)]);
    return null;
  });
  database.exec(`select take_pair(${text}, ${number}) from ${from}`);
  return pairs;
}
