import { MalformedBatchError } from "../batch/malformed-batch-error.ts";
import { RlpReader } from "../batch/rlp-reader.ts";

/** A place in encoded bytes. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Reads the canonical RLP list that `bytes` is wholly, item by item. @throws MalformedBatchError when it is not what is asked for. */
export class RlpList {
  readonly #bytes: Uint8Array;
  readonly #reader: RlpReader;
  readonly #end: number;
  #at: number;

  constructor(bytes: Uint8Array, span: Span = { start: 0, end: bytes.length }) {
    this.#bytes = bytes;
    this.#reader = new RlpReader(bytes);
    this.#reader.list(span.start, span.end);
    this.#at = this.#reader.start;
    this.#end = this.#reader.end;
    if (this.#end !== span.end) throw new MalformedBatchError(`bytes after the list, at byte ${this.#end}`);
  }

  get isAtEnd(): boolean {
    return this.#at === this.#end;
  }

  string(): Uint8Array {
    this.#reader.string(this.#at, this.#end);
    this.#at = this.#reader.end;
    return this.#bytes.subarray(this.#reader.start, this.#at);
  }

  list(): RlpList {
    const start = this.#at;
    this.#reader.list(start, this.#end);
    this.#at = this.#reader.end;
    return new RlpList(this.#bytes, { start, end: this.#at });
  }

  /** All items that are left, which are to be strings. */
  strings(): Uint8Array[] {
    const strings: Uint8Array[] = [];
    while (!this.isAtEnd) strings.push(this.string());
    return strings;
  }

  /** To be called where nothing more is expected. */
  close(): void {
    if (!this.isAtEnd) throw new MalformedBatchError(`more items than expected, at byte ${this.#at}`);
  }
}

/** An RLP integer. @throws MalformedBatchError when it begins with a zero, or is no safe integer. */
export function toInteger(bytes: Uint8Array): number {
  if (bytes[0] === 0) throw new MalformedBatchError("an integer that begins with a zero");
  return toSafeInteger(bytes);
}

/** Big-endian bytes as a number. @throws MalformedBatchError when it is no safe integer. */
export function toSafeInteger(bytes: Uint8Array): number {
  let value = 0;
  for (const byte of bytes) {
    value = value * 256 + byte;
    if (!Number.isSafeInteger(value)) throw new MalformedBatchError("an integer of more than 53 bits");
  }
  return value;
}

export function isSame(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}
