const NO_BYTES: Buffer = Buffer.alloc(0);

/**
 * Bytes that were received and not consumed, in one buffer: the chunk itself while nothing is unfinished, else a buffer of at most twice what is
 * unfinished. A chunk is never held for a small part of it.
 */
export class PendingBytes {
  #bytes = NO_BYTES;
  /** Whether the buffer was made here, and is no chunk. */
  #isOwn = true;
  #start = 0;
  #end = 0;

  get length(): number {
    return this.#end - this.#start;
  }

  /** Bytes that are held, with the room for more. */
  get heldLength(): number {
    return this.#bytes.length;
  }

  /** `needed`: the length that the unfinished input is to have, or may have at most. */
  push(chunk: Buffer, needed: number): void {
    if (this.length === 0) {
      this.#hold(chunk, chunk.length);
      this.#isOwn = false;
      return;
    }
    if (this.#end + chunk.length > this.#bytes.length) this.#move(chunk.length, needed);
    this.#end += chunk.copy(this.#bytes, this.#end);
  }

  /** The byte at an offset; undefined past the end. */
  at(offset: number): number | undefined {
    return offset < this.length ? this.#bytes[this.#start + offset] : undefined;
  }

  /** Offset of the first such byte from an offset on; -1 for none. */
  indexOf(byte: number, from: number): number {
    // The room behind the end is not looked at: a byte at a time, that would be looked at each time.
    const bytes = this.#end === this.#bytes.length ? this.#bytes : this.#bytes.subarray(0, this.#end);
    const found = bytes.indexOf(byte, this.#start + from);
    return found === -1 ? -1 : found - this.#start;
  }

  /** A view. */
  slice(from: number, to: number): Buffer {
    return this.#bytes.subarray(this.#start + from, this.#start + to);
  }

  consume(length: number): void {
    this.#start += length;
  }

  /** Frees the consumed bytes. Call it once the rest has to wait for more. */
  settle(needed: number): void {
    if (this.length === 0) this.discard();
    else if (!this.#isOwn || this.#start > 0) this.#move(0, needed);
  }

  discard(): void {
    this.#hold(NO_BYTES, 0);
  }

  #hold(bytes: Buffer, end: number): void {
    this.#bytes = bytes;
    this.#start = 0;
    this.#end = end;
    this.#isOwn = true;
  }

  /** Into a buffer of its own with room for `more`: twice as much, but no more than needed. */
  #move(more: number, needed: number): void {
    const { length } = this;
    const bytes = Buffer.allocUnsafeSlow(Math.max(length + more, Math.min(2 * length, needed)));
    this.#bytes.copy(bytes, 0, this.#start, this.#end);
    this.#hold(bytes, length);
  }
}
