/** Blocks for which the entry of an included transaction is kept, should a deep reorganisation throw it out. */
const keptBlocksMax = 64;
/** Signed transactions kept so, in bytes. */
const keptBytesMax = 67_108_864;
/** Entries that are removed from the journal together, at least: each removal is a wait for the disk. */
const removedTogether = 16;

interface Kept {
  readonly nonce: number;
  readonly blockNumber: number;
  readonly bytes: number;
}

/** The included and final transactions that still have an entry in the journal. */
export class KeptTransactions {
  #kept: Kept[] = [];
  #bytes = 0;

  keep(kept: Kept): void {
    this.#kept.push(kept);
    this.#bytes += kept.bytes;
  }

  has(nonce: number): boolean {
    return this.#kept.some((kept) => kept.nonce === nonce);
  }

  /** Lets go of what is deep enough below `blockNumber`, or too much; answers the nonces. */
  letGo(blockNumber: number): readonly number[] {
    let bytes = this.#bytes;
    let count = 0;
    for (const kept of this.#kept) {
      if (bytes <= keptBytesMax && kept.blockNumber > blockNumber - keptBlocksMax) break;
      bytes -= kept.bytes;
      count += 1;
    }
    if (count < removedTogether) return [];
    this.#bytes = bytes;
    return this.#kept.splice(0, count).map(({ nonce }) => nonce);
  }

  /** Takes out those in blocks after `blockNumber`, which are gone; answers their nonces. */
  takeAfter(blockNumber: number): readonly number[] {
    return this.#takeOut((kept) => kept.blockNumber > blockNumber);
  }

  /** Takes out those with these nonces, which the chain no longer knows. */
  takeNonces(nonces: ReadonlySet<number>): readonly number[] {
    return this.#takeOut((kept) => nonces.has(kept.nonce));
  }

  #takeOut(isOut: (kept: Kept) => boolean): readonly number[] {
    const out = this.#kept.filter(isOut);
    this.#kept = this.#kept.filter((kept) => !isOut(kept));
    for (const { bytes } of out) this.#bytes -= bytes;
    return out.map(({ nonce }) => nonce);
  }
}
