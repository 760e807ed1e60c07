/** The tables of the index. The chain has all their content, so the broker can empty and rebuild them. */
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
