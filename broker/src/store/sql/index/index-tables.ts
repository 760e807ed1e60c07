/** The tables of the index. The broker can empty them and rebuild their content from the chain, except the vanished events of earlier reorgs. */
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
  /** The damage, in words for the operator. */
  readonly found: string;
}
