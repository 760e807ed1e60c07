import { MalformedError } from "../malformed-error.ts";

/** Longest payload, in bytes, whose length fits into the first byte of its RLP header. */
const shortMax = 55;
const stringBase = 0x80;
const listBase = 0xc0;
/** Maximum size of a length field, in bytes; four are enough for 4 GiB. */
const lengthBytesMax = 4;

/**
 * Reads canonical RLP without copying. After each read, `start` to `end` is the payload of the item, and the next item begins at `end`.
 * @throws MalformedError if the bytes are not canonical RLP or the item has the wrong kind.
 */
export class RlpReader {
  start = 0;
  end = 0;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Whether the item at `at` is a list; it must begin before `limit`. */
  isList(at: number, limit: number): boolean {
    return this.#byte(at, limit) >= listBase;
  }

  /** Reads the list at `at`; it must end by `limit`. */
  list(at: number, limit: number): void {
    const first = this.#byte(at, limit);
    if (first < listBase) throw new MalformedError(`a string where a list was expected, at byte ${at}`);
    this.#payload(first - listBase, at, limit);
  }

  /** Reads the string at `at`; it must end by `limit`. */
  string(at: number, limit: number): void {
    const first = this.#byte(at, limit);
    if (first >= listBase) throw new MalformedError(`a list where a string was expected, at byte ${at}`);
    if (first < stringBase) {
      this.start = at;
      this.end = at + 1;
      return;
    }
    this.#payload(first - stringBase, at, limit);
    if (this.end - this.start === 1 && this.#byte(this.start, limit) < stringBase) {
      throw new MalformedError(`a single byte with a header, at byte ${at}`);
    }
  }

  #payload(code: number, at: number, limit: number): void {
    const lengthBytes = Math.max(code - shortMax, 0);
    this.start = at + 1 + lengthBytes;
    this.end = this.start + (lengthBytes === 0 ? code : this.#length(at + 1, lengthBytes, limit));
    if (this.end > limit)
      throw new MalformedError(`an item that reaches past the end of its list or of the bytes, at byte ${at}`);
  }

  #length(at: number, lengthBytes: number, limit: number): number {
    if (lengthBytes > lengthBytesMax) throw new MalformedError(`a length of ${lengthBytes} bytes, at byte ${at}`);
    let length = 0;
    for (let index = at; index < at + lengthBytes; index += 1) length = length * 256 + this.#byte(index, limit);
    if (length <= shortMax || length < 256 ** (lengthBytes - 1)) {
      throw new MalformedError(`a length that is longer than needed, at byte ${at}`);
    }
    return length;
  }

  #byte(at: number, limit: number): number {
    const byte = at < limit ? this.#bytes[at] : undefined;
    if (byte === undefined) throw new MalformedError(`the end of the bytes where an item was expected, at byte ${at}`);
    return byte;
  }
}
