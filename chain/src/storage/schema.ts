/** Raised when the tables change; a file of another version is refused. */
export const SCHEMA_VERSION = 1;

/** Marks a file as a chain of Stele ("Stel"), so that another SQLite file is not taken for one. */
export const APPLICATION_ID = 0x5374_656c;

/**
 * `place` is block number × 2^20 + index of the transaction in its block. `hash_key` is the first 6 bytes of a hash: small in
 * the index, and compared with the whole hash on reading. `log_places` says in which transactions an address (kind 0) or a
 * first topic (kind 1) occurs in a log.
 */
export const SCHEMA = `
  CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE blocks (number INTEGER PRIMARY KEY, hash_key INTEGER NOT NULL, header BLOB NOT NULL) STRICT;
  CREATE INDEX blocks_by_hash ON blocks (hash_key);
  CREATE TABLE transactions (
    place INTEGER PRIMARY KEY, hash_key INTEGER NOT NULL, receipt BLOB NOT NULL, raw BLOB NOT NULL
  ) STRICT;
  CREATE INDEX transactions_by_hash ON transactions (hash_key);
  CREATE TABLE log_places (key INTEGER NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (key, place)) STRICT, WITHOUT ROWID;
  CREATE TABLE nodes (key BLOB PRIMARY KEY, node BLOB NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE codes (hash BLOB PRIMARY KEY, code BLOB NOT NULL) STRICT;
`;
