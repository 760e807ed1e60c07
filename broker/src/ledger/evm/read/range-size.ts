const blocksAtFirst = 16;
/** Blocks asked for at once, at most. */
const blocksMax = 8192;
/** Encoded events wanted at most in one answer; a range that brings more is halved. */
const bytesWanted = 4_194_304;
/** Answers at the most that an endpoint took before more is tried again. */
const answersBeforeMore = 16;

/** How many blocks to ask for at once: as many as the endpoint takes and memory should hold. */
export class RangeSize {
  #blocks = blocksAtFirst;
  #max = blocksMax;
  #answers = 0;

  get blocks(): number {
    return this.#blocks;
  }

  /** After an answer with `bytes` of encoded events. */
  onAnswer(bytes: number): void {
    this.#answers += 1;
    if (this.#answers >= answersBeforeMore) this.#raise();
    if (bytes > bytesWanted) this.#blocks = Math.max(1, this.#blocks >> 1);
    else if (bytes < bytesWanted / 4) this.#blocks = Math.min(this.#max, this.#blocks * 2);
  }

  /** After an answer that was lost or came too late: it may have been too long, and the endpoint may be away. */
  onLost(): void {
    this.#blocks = Math.max(1, this.#blocks >> 1);
  }

  /** After a refusal; false when there is nothing to take back. */
  onRefusal(): boolean {
    this.#answers = 0;
    if (this.#blocks === 1) return false;
    this.#blocks >>= 1;
    this.#max = this.#blocks;
    return true;
  }

  #raise(): void {
    this.#answers = 0;
    this.#max = Math.min(this.#max * 2, blocksMax);
  }
}
