/** Kinds of faults of the store's database that need different remedies. */
export type StoreFault =
  | "full"
  | "io"
  | "corrupt"
  | "locked"
  | "read-only"
  | "cannot-open"
  | "newer"
  /** A server that does not answer now, or not in time. */
  | "unavailable"
  /** Another transaction held a lock for longer than a change waits. */
  | "lock-timeout"
  /** All connections were in use for longer than a call waits. */
  | "exhausted"
  /** The database undid the transaction because of another one; a retry may succeed. */
  | "conflict"
  | "other";

/** A failure of the store's database. The message names the database and says what to do; it is for operators, not for clients. */
export class StoreError extends Error {
  readonly fault: StoreFault;

  constructor(fault: StoreFault, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "StoreError";
    this.fault = fault;
  }
}
