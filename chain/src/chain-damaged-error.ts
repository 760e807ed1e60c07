/** What the chain's file holds is not what its hashes say. */
export class ChainDamagedError extends Error {
  constructor(what: string, cause?: unknown) {
    super(what, cause === undefined ? undefined : { cause });
    this.name = "ChainDamagedError";
  }
}
