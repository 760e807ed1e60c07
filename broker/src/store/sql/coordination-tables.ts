/** One row for each member if nodes share the database. Times are Unix times in milliseconds by the database's clock. */
export interface NodeTable {
  readonly node_id: string;
  readonly address: string;
  readonly joined_at: number;
  readonly expires_at: number;
  /** Groups that the member can deliver, as a JSON list. */
  readonly groups: string;
}

/** The node that writes each group's index. The row stays if no node does, so that epochs only grow. */
export interface GroupLeaseTable {
  readonly group_id: string;
  readonly node_id: string | null;
  readonly epoch: number;
}

/** The node that signs with each address. */
export interface SignerTable {
  readonly group_id: string;
  readonly sender: string;
  readonly node_id: string;
}
