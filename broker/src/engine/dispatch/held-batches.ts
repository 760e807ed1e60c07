/** A reader that holds batches in memory which it can read again from the store. */
export interface Holder {
  /** Drops the held batches; the reader reads them again when it continues. Called in the turn of another reader. */
  letGo(): void;
}

/**
 * Limits the memory of batches that readers hold while they are behind. A reader whose client takes nothing holds its next batch, and readers at different
 * places of the index hold different batches. If they exceed the limit, the readers that have not moved for longest drop theirs.
 */
export class HeldBatches {
  readonly #bytesMax: number;
  /** Bytes by reader; the reader that has not moved for longest comes first. */
  readonly #bytesOf = new Map<Holder, number>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Call it when a reader has moved, with the bytes that it holds now. */
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
