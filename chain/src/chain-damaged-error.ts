/** Data in the chain's file is missing, cannot be read, or does not match its hash. */
export class ChainDamagedError extends Error {
  constructor(what: string, cause?: unknown) {
    super(what, cause === undefined ? undefined : { cause });
    this.name = "ChainDamagedError";
  }
}
