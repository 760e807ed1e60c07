const NO_BYTES: Buffer = Buffer.alloc(0);

/**
 * Received bytes that are not consumed yet, in one buffer. The buffer is the received chunk itself if nothing was unfinished, else a copy of at most twice the
 * length of the unfinished bytes. `settle` drops the chunk, so that no chunk stays in memory for a small part of it.
 */
export class PendingBytes {
  #bytes = NO_BYTES;
  /** Whether the buffer was allocated here; false for a chunk. */
  #isOwn = true;
  #start = 0;
  #end = 0;

  get length(): number {
    return this.#end - this.#start;
  }

  /** Size of the buffer, including free room. */
  get heldLength(): number {
    return this.#bytes.length;
  }

  /** `needed` is the final length of the unfinished input, or its maximum. */
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

  /** Offset of the first `byte` at or after `from`; -1 for none. */
  indexOf(byte: number, from: number): number {
    // Leaves out the free room behind the end: if bytes arrive one at a time, each call would search it again.
    const bytes = this.#end === this.#bytes.length ? this.#bytes : this.#bytes.subarray(0, this.#end);
    const found = bytes.indexOf(byte, this.#start + from);
    return found === -1 ? -1 : found - this.#start;
  }

  /** A view of the buffer, not a copy. */
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

  /** Moves the bytes into a new buffer with room for `more`: of twice the size, but no more than needed. */
  #move(more: number, needed: number): void {
    const { length } = this;
    const bytes = Buffer.allocUnsafeSlow(Math.max(length + more, Math.min(2 * length, needed)));
    this.#bytes.copy(bytes, 0, this.#start, this.#end);
    this.#hold(bytes, length);
  }
}
