/** One row for each share; see the port's StoredShare. */
export interface ShareTable {
  readonly share_id: string;
  readonly group_id: string;
  readonly filter: string;
  readonly cursor: number;
  readonly epoch: number;
  /** Check of `cursor` and `epoch`; see cursorCheck. */
  readonly cursor_check: number;
  readonly checksum: number;
}

/** One row for each event that a share gave to a member and that is not acknowledged. The member has it as long as its session has `session_epoch`. */
export interface ShareEventTable {
  readonly share_id: string;
  readonly position: number;
  readonly topic: string;
  readonly session_id: string;
  readonly session_epoch: number;
  /** The epoch that the session had when the share gave it the event. */
  readonly given_epoch: number;
  readonly checksum: number;
}
