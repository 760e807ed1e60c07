/** A value that a statement takes. */
export type SqliteValue = null | number | bigint | string | Uint8Array;

/** What is used of a prepared statement. */
export interface NativeStatement {
  all(...parameters: readonly SqliteValue[]): unknown[];
  run(...parameters: readonly SqliteValue[]): { readonly changes: number | bigint };
  columns(): readonly unknown[];
}

/** What is used of a database, in the shape that Node gave it. */
export interface NativeDatabase {
  readonly isTransaction: boolean;
  exec(sql: string): void;
  prepare(sql: string): NativeStatement;
  /** Makes a function that statements can call. */
  function(name: string, body: (first: SqliteValue, second: SqliteValue) => SqliteValue): void;
  close(): void;
}

interface NativeModule {
  readonly DatabaseSync: new (file: string, options: { readonly readOnly: boolean }) => NativeDatabase;
}

/** Lowest major version of Node whose own SQLite is used: the first line where it is there without a flag from the start. */
const nodeMajorMin = 24;

/** Opens with Node's own SQLite, or with the package of the same interface where Node has none that is fit. */
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
