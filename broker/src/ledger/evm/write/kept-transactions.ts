/** For how many blocks at least the journal keeps an included transaction, in case a deep reorg removes it; fewer beyond `keptBytesMax`. */
const keptBlocksMax = 64;
/** Bound on the bytes of the included transactions that the journal keeps. Fewer than `removedTogether` transactions may exceed it. */
const keptBytesMax = 67_108_864;
/** Lower bound on the entries removed together: each removal waits for the disk. */
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

  has(nonce: number): boolean {
    return this.#kept.some((kept) => kept.nonce === nonce);
  }

  /** Removes the oldest ones if enough of them are deep below `blockNumber` or exceed the bound on bytes; returns their nonces. */
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

  /** Removes those in blocks after `blockNumber`, which are no longer on the chain; returns their nonces. */
  takeAfter(blockNumber: number): readonly number[] {
    return this.#takeOut((kept) => kept.blockNumber > blockNumber);
  }

  /** Removes those with nonces that the chain no longer has; returns their nonces. */
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
