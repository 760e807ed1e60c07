/** One check of whether the chain's count of the signer's transactions includes a nonce. */
export interface NonceLook {
  /** Whether a final block has a transaction with the nonce. */
  readonly isUsed: boolean;
  /** The newest final block that was read. */
  readonly readUpTo: number;
  /** When, in milliseconds of the monotonic clock. */
  readonly at: number;
}

/** For how many final blocks the chain must count a nonce as used. Before that, the count may come from a chain node on a branch that will die. */
const usedBlocksMin = 64;
/** Or for how long, in milliseconds: some chains make blocks only for transactions, and no chain node follows a dying branch for that long. */
const usedMsMin = 600_000;

/** The first of the latest consecutive checks that found the nonce used; undefined if the newest check found it unused. Ignores a missing check. */
export function findUsedSince(before: NonceLook | undefined, look: NonceLook | undefined): NonceLook | undefined {
  if (look === undefined) return before;
  return look.isUsed ? (before ?? look) : undefined;
}

/** Whether no reorg can undo the use of a nonce. Reads no old state, because chain nodes keep that of few blocks. */
export function isUsedForGood(since: NonceLook | undefined, look: NonceLook | undefined): boolean {
  if (since === undefined || look === undefined) return false;
  return look.readUpTo - since.readUpTo >= usedBlocksMin || look.at - since.at >= usedMsMin;
}
