/** Raised when the tables change; a file of another version is refused. */
export const SCHEMA_VERSION = 2;

/** Marks a file as a chain of Stele ("Stel"), so that no other SQLite file is mistaken for one. */
export const APPLICATION_ID = 0x5374_656c;

/** SQL for `places`, or for the table that will replace it. */
export function placesTable(name: string): string {
  return `CREATE TABLE ${name} (key INTEGER NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (key, place)) STRICT, WITHOUT ROWID`;
}

/**
 * `place` is block number × 2^20 + index of the transaction in its block. `places` says where a key occurs. A key is the first 6 bytes of a hash: the hash of a
 * block or transaction, or of an address (kind 0) or a first topic (kind 1) of a log. Readers compare the whole hash of a block or transaction. `unsaved` has
 * the effects of the newest blocks that are not in `nodes` and `places` yet (`effects-codec.ts`).
 */
export const SCHEMA = `
  CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE blocks (number INTEGER PRIMARY KEY, header BLOB NOT NULL) STRICT;
  CREATE TABLE transactions (place INTEGER PRIMARY KEY, receipt BLOB NOT NULL, raw BLOB NOT NULL) STRICT;
  CREATE TABLE unsaved (number INTEGER PRIMARY KEY, effects BLOB NOT NULL) STRICT;
  ${placesTable("places")};
  CREATE TABLE nodes (key BLOB PRIMARY KEY, node BLOB NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE codes (hash BLOB PRIMARY KEY, code BLOB NOT NULL) STRICT;
`;
