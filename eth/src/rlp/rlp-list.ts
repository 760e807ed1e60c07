import { MalformedError } from "../malformed-error.ts";
import { RlpReader } from "./rlp-reader.ts";

/** A range of encoded bytes. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Reads the items of one canonical RLP list. @throws MalformedError if the list does not fill `span`, or an item is malformed or of another kind. */
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
    if (this.#end !== span.end) throw new MalformedError(`bytes after the list, at byte ${this.#end}`);
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

  /** All remaining items, which must be strings. */
  strings(): Uint8Array[] {
    const strings: Uint8Array[] = [];
    while (!this.isAtEnd) strings.push(this.string());
    return strings;
  }

  /** @throws MalformedError if there are more items. */
  close(): void {
    if (!this.isAtEnd) throw new MalformedError(`more items than expected, at byte ${this.#at}`);
  }
}

/** The payload of an RLP integer as a number. @throws MalformedError if it begins with a zero, or is not a safe integer. */
export function toInteger(bytes: Uint8Array): number {
  if (bytes[0] === 0) throw new MalformedError("an integer that begins with a zero");
  return toSafeInteger(bytes);
}

/** Big-endian bytes as a number. @throws MalformedError if it is not a safe integer. */
export function toSafeInteger(bytes: Uint8Array): number {
  let value = 0;
  for (const byte of bytes) {
    value = value * 256 + byte;
    if (!Number.isSafeInteger(value)) throw new MalformedError("an integer of more than 53 bits");
  }
  return value;
}
