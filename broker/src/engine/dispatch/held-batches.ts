/** A reader that keeps batches which are in the store too. */
export interface Holder {
  /** The reader lets go of them, and reads them again when it goes on. Called in the turn of another reader. */
  letGo(): void;
}

/**
 * Batches that readers keep although they are behind. One whose client takes nothing keeps its next batch, and at every place of the index that is
 * another batch. Where they are too many, the readers that have stood still for longest let go of theirs.
 */
export class HeldBatches {
  readonly #bytesMax: number;
  /** By reader, the one that has stood still for longest first. */
  readonly #bytesOf = new Map<Holder, number>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** A reader has moved, and says how many bytes it keeps now. */
  hold(holder: Holder, bytes: number): void {
    this.#remove(holder);
    if (bytes === 0) return;
    this.#bytesOf.set(holder, bytes);
    this.#bytes += bytes;
    for (const [slowest] of this.#bytesOf) {
      if (this.#bytes <= this.#bytesMax || slowest === holder) return;
      this.#remove(slowest);
      slowest.letGo();
    }
  }

  #remove(holder: Holder): void {
    this.#bytes -= this.#bytesOf.get(holder) ?? 0;
    this.#bytesOf.delete(holder);
  }
}
