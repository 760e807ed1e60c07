import { utf8Bytes, writeUtf8 } from "./utf8.ts";

/** Longest payload, in bytes, whose length fits into the first byte of its RLP header. */
const shortMax = 55;
const stringBase = 0x80;
const listBase = 0xc0;

/** Encoded size of a list whose payload has `length` bytes. */
export function listBytes(length: number): number {
  return headerBytes(length) + length;
}

/** Encoded size of a string. */
export function stringBytes(content: Uint8Array): number {
  return content.length === 1 && isOwnItem(content[0]) ? 1 : headerBytes(content.length) + content.length;
}

/** Encoded size of `text` as a UTF-8 string. */
export function textBytes(text: string): number {
  if (text.length === 1 && isOwnItem(text.charCodeAt(0))) return 1;
  const length = utf8Bytes(text);
  return headerBytes(length) + length;
}

/** Encoded size of `value`, below 2^32, as an RLP integer, which has no leading zeros. */
export function integerBytes(value: number): number {
  return value < stringBase ? 1 : 1 + significantBytes(value);
}

/** Writes RLP (Ethereum Yellow Paper, appendix B) into a buffer that the caller made large enough. */
export class RlpWriter {
  readonly bytes: Uint8Array;
  /** Where the next item goes. */
  at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  /** Writes the header of a list; its payload of `length` bytes must follow. */
  list(length: number): void {
    this.#header(listBase, length);
  }

  string(content: Uint8Array): void {
    if (content.length !== 1 || !isOwnItem(content[0])) this.#header(stringBase, content.length);
    this.raw(content);
  }

  text(value: string): void {
    const bytes = utf8Bytes(value);
    if (bytes !== 1 || !isOwnItem(value.charCodeAt(0))) this.#header(stringBase, bytes);
    writeUtf8(this.bytes, this.at, { value, bytes });
    this.at += bytes;
  }

  /** Writes `value`, which must be below 2^32. */
  integer(value: number): void {
    if (value === 0) this.#byte(stringBase);
    else if (value < stringBase) this.#byte(value);
    else {
      this.#header(stringBase, significantBytes(value));
      this.#bigEndian(value);
    }
  }

  /** Writes items that are already encoded. */
  raw(items: Uint8Array): void {
    this.bytes.set(items, this.at);
    this.at += items.length;
  }

  #header(base: number, length: number): void {
    if (length <= shortMax) {
      this.#byte(base + length);
      return;
    }
    this.#byte(base + shortMax + significantBytes(length));
    this.#bigEndian(length);
  }

  #bigEndian(value: number): void {
    for (let shift = (significantBytes(value) - 1) * 8; shift >= 0; shift -= 8) this.#byte((value >>> shift) & 0xff);
  }

  #byte(value: number): void {
    this.bytes[this.at] = value;
    this.at += 1;
  }
}

/** Size of the header of a string or list whose payload has `length` bytes. */
export function headerBytes(length: number): number {
  return length <= shortMax ? 1 : 1 + significantBytes(length);
}

/** Whether a single byte is its own encoding: only one below 0x80 is. */
function isOwnItem(byte: number | undefined): boolean {
  return byte !== undefined && byte < stringBase;
}

function significantBytes(value: number): number {
  if (value < 0x100) return 1;
  if (value < 0x1_0000) return 2;
  return value < 0x100_0000 ? 3 : 4;
}
