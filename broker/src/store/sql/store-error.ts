/** What is wrong with the store's database, as far as an operator can act on it. */
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
  /** A lock that another transaction kept for longer than a change waits. */
  | "lock-timeout"
  /** More callers than connections, for longer than a call waits. */
  | "exhausted"
  /** Undone for the sake of another transaction; the same again may succeed. */
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
