/** Splits a stream of JSON objects and arrays into one text per value; ignores whatever separates them. */
export class JsonFrames {
  readonly #bytesMax: number;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The texts that this chunk completes. @throws RangeError if a text exceeds `bytesMax` and is still incomplete. */
  push(chunk: Buffer): readonly string[] {
    const frames: string[] = [];
    let start = 0;
    for (let index = 0; index < chunk.length; index += 1) {
      const wasInside = this.#depth > 0;
      this.#read(chunk[index] ?? 0);
      if (!wasInside && this.#depth > 0) start = index;
      if (wasInside && this.#depth === 0) frames.push(this.#take(chunk.subarray(start, index + 1)));
    }
    if (this.#depth > 0) this.#keep(chunk.subarray(start));
    return frames;
  }

  #read(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (this.#isInString) this.#readInString(byte);
    else if (byte === quote) this.#isInString = this.#depth > 0;
    else if (byte === openBrace || byte === openBracket) this.#depth += 1;
    else if ((byte === closeBrace || byte === closeBracket) && this.#depth > 0) this.#depth -= 1;
  }

  #readInString(byte: number): void {
    if (byte === backslash) this.#isEscaped = true;
    else if (byte === quote) this.#isInString = false;
  }

  #keep(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > this.#bytesMax) throw new RangeError(`a message is longer than ${this.#bytesMax} bytes`);
    this.#chunks.push(part);
  }

  #take(last: Buffer): string {
    const text = Buffer.concat([...this.#chunks, last]).toString("utf8");
    this.#chunks = [];
    this.#bytes = 0;
    return text;
  }
}

const [quote, backslash, openBrace, closeBrace, openBracket, closeBracket] = [0x22, 0x5c, 0x7b, 0x7d, 0x5b, 0x5d];
