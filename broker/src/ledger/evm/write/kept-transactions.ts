/** The journal keeps an included transaction for at least this many blocks, in case a deep reorg removes it; for fewer if `keptBytesMax` is exceeded. */
export const keptBlocksMax = 64;
/** Upper bound on the bytes of included transactions in the journal; up to `removedTogether` - 1 transactions may come on top. */
const keptBytesMax = 67_108_864;
/** Minimum number of entries per removal, because each removal waits for the disk. */
const removedTogether = 16;

interface Kept {
  readonly nonce: number;
  readonly blockNumber: number;
  readonly bytes: number;
}

/** The final transactions that still have an entry in the journal. */
export class KeptTransactions {
  #kept: Kept[] = [];
  #bytes = 0;

  keep(kept: Kept): void {
    this.#kept.push(kept);
    this.#bytes += kept.bytes;
  }

  /**
   * Removes the oldest transactions once at least `removedTogether` are deep below `blockNumber` or exceed the bound on bytes; returns their nonces.
   */
  prune(blockNumber: number): readonly number[] {
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

  /** Removes the transactions in blocks after `blockNumber`, which are no longer on the chain; returns their nonces. */
  takeAfter(blockNumber: number): readonly number[] {
    return this.#takeOut((kept) => kept.blockNumber > blockNumber);
  }

  /** Removes the transactions with these nonces, which the chain no longer has; returns the nonces removed. */
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
