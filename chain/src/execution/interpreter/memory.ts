import { readWord, type Word, WORD_BYTES, writeWord } from "./word.ts";

const WORD_GAS = 3;
/** Memory costs the square of the number of its words, divided by this, besides a price for each word (Yellow Paper, appendix H: memory expansion). */
const QUADRATIC_DIVISOR = 512;
const FIRST_BYTES = 1_024;

/** The memory of one execution: bytes that grow by words, and what growing costs. */
export class Memory {
  #bytes = Buffer.alloc(FIRST_BYTES);
  #words = 0;

  /** Bytes in use, a multiple of 32. */
  get size(): number {
    return this.#words * WORD_BYTES;
  }

  /** Whether a range is in use already, and so costs nothing. */
  has(offset: Word, length: Word): boolean {
    return typeof offset === "number" && typeof length === "number" && offset + length <= this.#words * WORD_BYTES;
  }

  /** Gas for reaching a range for the first time; infinite if no gas could ever pay for it. */
  costOf(offset: Word, length: Word): number {
    if (length === 0) return 0;
    if (typeof offset !== "number" || typeof length !== "number") return Number.POSITIVE_INFINITY;
    const words = Math.ceil((offset + length) / WORD_BYTES);
    return words <= this.#words ? 0 : memoryGas(words) - memoryGas(this.#words);
  }

  /** Grows the memory to contain a range whose gas was charged. */
  grow(offset: Word, length: Word): void {
    if (length === 0) return;
    const words = Math.ceil((Number(offset) + Number(length)) / WORD_BYTES);
    if (words <= this.#words) return;
    this.#words = words;
    if (this.size <= this.#bytes.length) return;
    const grown = Buffer.alloc(Math.max(this.size, this.#bytes.length * 2));
    this.#bytes.copy(grown);
    this.#bytes = grown;
  }

  readWord(at: number): Word {
    return readWord(this.#bytes, at);
  }

  writeWord(at: number, word: Word): void {
    writeWord(this.#bytes, at, word);
  }

  writeByte(at: number, byte: number): void {
    this.#bytes[at] = byte;
  }

  /** A view of the memory, which later changes may overwrite. */
  view(offset: Word, length: Word): Buffer {
    return length === 0
      ? this.#bytes.subarray(0, 0)
      : this.#bytes.subarray(Number(offset), Number(offset) + Number(length));
  }

  copy(offset: Word, length: Word): Buffer {
    return Buffer.from(this.view(offset, length));
  }

  /** Copies from `source`, as if zeros followed its end. */
  writeFrom(
    source: Buffer,
    { at, from, length }: { readonly at: Word; readonly from: Word; readonly length: Word },
  ): void {
    if (length === 0) return;
    const start = from < source.length ? Number(from) : source.length;
    const copied = source.copy(this.#bytes, Number(at), start, Math.min(source.length, start + Number(length)));
    this.#bytes.fill(0, Number(at) + copied, Number(at) + Number(length));
  }

  move(to: Word, from: Word, length: Word): void {
    if (length !== 0) this.#bytes.copyWithin(Number(to), Number(from), Number(from) + Number(length));
  }
}

/** Gas of a memory with this many words. */
export function memoryGas(words: number): number {
  return words * WORD_GAS + Math.floor((words * words) / QUADRATIC_DIVISOR);
}
