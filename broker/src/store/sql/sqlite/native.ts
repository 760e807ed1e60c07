/** A value that a statement can bind. */
export type SqliteValue = null | number | bigint | string | Uint8Array;

/** The members of a prepared statement that the store uses. */
export interface NativeStatement {
  all(...parameters: readonly SqliteValue[]): unknown[];
  /** The first row; undefined if there is none. */
  get(...parameters: readonly SqliteValue[]): unknown;
  run(...parameters: readonly SqliteValue[]): { readonly changes: number | bigint };
  columns(): readonly unknown[];
  /** Whether integers are returned as bigints. */
  setReadBigInts(isOn: boolean): void;
}

/** The members of a database that the store uses, in the shape of `node:sqlite`. */
export interface NativeDatabase {
  readonly isTransaction: boolean;
  exec(sql: string): void;
  prepare(sql: string): NativeStatement;
  /** Defines a function that statements can call. */
  function(name: string, body: (first: SqliteValue, second: SqliteValue) => SqliteValue): void;
  close(): void;
}

interface NativeModule {
  readonly DatabaseSync: new (file: string, options: { readonly readOnly: boolean }) => NativeDatabase;
}

/** Lowest major version of Node whose own SQLite we use: the first that has `node:sqlite` without a flag in every release. */
const nodeMajorMin = 24;

/** Opens a database with Node's own SQLite, or with a package that has the same interface if Node's is missing or too old. */
export async function openNative(file: string, { readOnly = false } = {}): Promise<NativeDatabase> {
  const module: unknown = isNodeFit()
    ? process.getBuiltinModule("node:sqlite")
    : await import("@photostructure/sqlite");
  const { DatabaseSync } = module as NativeModule; // Both have it, in the same shape.
  return new DatabaseSync(file, { readOnly });
}

function isNodeFit(): boolean {
  return Number(process.versions.node.split(".")[0]) >= nodeMajorMin;
}
