/** The tables of the index. The chain holds everything in them, so that they can be emptied and built anew. */
export const indexTables = [
  "batches",
  "topics",
  "blocks",
  "retained",
  "skipped_entries",
  "vanished",
  "groups",
] as const;

export type IndexTable = (typeof indexTables)[number];

/** Damage of the index. */
export interface IndexFinding {
  readonly table: IndexTable;
  /** For the operator. */
  readonly found: string;
}
