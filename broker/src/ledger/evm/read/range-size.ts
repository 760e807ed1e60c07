const blocksAtFirst = 16;
/** Upper bound on the blocks of one request for logs. */
const blocksMax = 8192;
/** Desired memory of the logs of one answer, in bytes. An answer with more halves the range. */
const bytesWanted = 4_194_304;
/** Number of answers after which the maximum range is doubled; refusals lower it. */
const answersBeforeMore = 16;

/** The number of blocks per request: as many as the endpoint answers and memory allows. */
export class RangeSize {
  #blocks = blocksAtFirst;
  #max = blocksMax;
  #answers = 0;

  get blocks(): number {
    return this.#blocks;
  }

  /** Call it after an answer whose logs take `bytes` of memory. */
  onAnswer(bytes: number): void {
    this.#answers += 1;
    if (this.#answers >= answersBeforeMore) this.#raise();
    if (bytes > bytesWanted) this.#blocks = Math.max(1, this.#blocks >> 1);
    else if (bytes < bytesWanted / 4) this.#blocks = Math.min(this.#max, this.#blocks * 2);
  }

  /** Call it after any other failure: the answer may have been too long, or the endpoint may be down. */
  onLost(): void {
    this.#blocks = Math.max(1, this.#blocks >> 1);
  }

  /** Call it if the endpoint refused the range. Returns false if the range is a single block and cannot shrink. */
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
