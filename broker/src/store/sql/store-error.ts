/** What is wrong with the store's database, as far as an operator can act on it. */
export type StoreFault = "full" | "io" | "corrupt" | "locked" | "read-only" | "cannot-open" | "newer" | "other";

/** A failure of the store's database. The message names the file and says what to do; it is for operators, not for clients. */
export class StoreError extends Error {
  readonly fault: StoreFault;

  constructor(fault: StoreFault, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "StoreError";
    this.fault = fault;
  }
}
