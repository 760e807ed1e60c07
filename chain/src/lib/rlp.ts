import { toBuffer } from "./bytes.ts";

/** What RLP encodes: byte strings and lists of them (Yellow Paper, appendix B). */
export type RlpItem = Uint8Array | readonly RlpItem[];

const STRING_OFFSET = 0x80;
const LIST_OFFSET = 0xc0;
/** Longest string or list whose length stands in its first byte, in bytes. */
const SHORT_BYTES_MAX = 55;
/** Deepest nesting of lists that is decoded. */
const DEPTH_MAX = 32;

/** Encodes into one buffer that is allocated once: nested lists of large strings cost no copies. */
export function encodeRlp(item: RlpItem, prefix: Uint8Array = new Uint8Array(0)): Uint8Array {
  const lists: number[] = [];
  const output = Buffer.allocUnsafe(prefix.length + measure(item, lists));
  output.set(prefix, 0);
  new Writer(output, lists).write(item, prefix.length);
  return output;
}

/** How many bytes an item takes. The payloads of its lists, in the order in which the lists begin, go to `lists`: each is measured once. */
function measure(item: RlpItem, lists: number[]): number {
  if (item instanceof Uint8Array) return isSingleByte(item) ? 1 : headerLength(item.length) + item.length;
  const place = lists.push(0) - 1;
  let length = 0;
  for (const child of item) length += measure(child, lists);
  lists[place] = length;
  return headerLength(length) + length;
}

function isSingleByte(bytes: Uint8Array): boolean {
  return bytes.length === 1 && (bytes[0] ?? 0) < STRING_OFFSET;
}

/** Bytes before a payload of so many bytes. */
export function headerLength(length: number): number {
  return length <= SHORT_BYTES_MAX ? 1 : 1 + lengthBytes(length);
}

function lengthBytes(length: number): number {
  return length < 0x1_00 ? 1 : length < 0x1_00_00 ? 2 : length < 0x1_00_00_00 ? 3 : 4;
}

/** The header of a list whose items take so many bytes. */
export function listHeader(length: number): Uint8Array {
  const header = Buffer.allocUnsafe(headerLength(length));
  writeHeader(header, { offset: LIST_OFFSET, length }, 0);
  return header;
}

function writeHeader(
  output: Buffer,
  { offset, length }: { readonly offset: number; readonly length: number },
  at: number,
): number {
  if (length <= SHORT_BYTES_MAX) {
    output[at] = offset + length;
    return at + 1;
  }
  const bytes = lengthBytes(length);
  output[at] = offset + SHORT_BYTES_MAX + bytes;
  return output.writeUIntBE(length, at + 1, bytes);
}

class Writer {
  readonly #output: Buffer;
  readonly #lists: readonly number[];
  #next = 0;

  constructor(output: Buffer, lists: readonly number[]) {
    this.#output = output;
    this.#lists = lists;
  }

  /** Answers where the item ends. */
  write(item: RlpItem, at: number): number {
    if (item instanceof Uint8Array) return this.#writeString(item, at);
    const length = this.#lists[this.#next] ?? 0;
    this.#next += 1;
    let end = writeHeader(this.#output, { offset: LIST_OFFSET, length }, at);
    for (const child of item) end = this.write(child, end);
    return end;
  }

  #writeString(bytes: Uint8Array, at: number): number {
    const length = bytes.length;
    const start = isSingleByte(bytes) ? at : writeHeader(this.#output, { offset: STRING_OFFSET, length }, at);
    this.#output.set(bytes, start);
    return start + length;
  }
}

/** Decodes one item that fills `encoded`. Byte strings are views of it. Throws on anything that is not canonical. */
export function decodeRlp(encoded: Uint8Array): RlpItem {
  const { item, end } = readItem(toBuffer(encoded), 0, 0);
  if (end !== encoded.length) throw new Error("rlp: input has bytes after the value");
  return item;
}

interface Read {
  readonly item: RlpItem;
  readonly end: number;
}

function readItem(input: Buffer, at: number, depth: number): Read {
  const first = input[at];
  if (first === undefined) throw new Error("rlp: unexpected end of input");
  if (first < STRING_OFFSET) return { item: input.subarray(at, at + 1), end: at + 1 };
  const isList = first >= LIST_OFFSET;
  const { start, end } = readHeader(input, at, isList ? LIST_OFFSET : STRING_OFFSET);
  if (end > input.length) throw new Error("rlp: value is longer than the input");
  if (isList) return { item: readList(input.subarray(0, end), start, depth), end };
  const item = input.subarray(start, end);
  if (isSingleByte(item)) throw new Error("rlp: a single byte is encoded with a length");
  return { item, end };
}

function readHeader(input: Buffer, at: number, offset: number): { readonly start: number; readonly end: number } {
  const code = (input[at] ?? 0) - offset;
  if (code <= SHORT_BYTES_MAX) return { start: at + 1, end: at + 1 + code };
  const bytes = code - SHORT_BYTES_MAX;
  const start = at + 1 + bytes;
  if (bytes > 4 || start > input.length) throw new Error("rlp: value is longer than the input");
  const length = input.readUIntBE(at + 1, bytes);
  if (length <= SHORT_BYTES_MAX || input[at + 1] === 0) throw new Error("rlp: a length is not canonical");
  return { start, end: start + length };
}

function readList(input: Buffer, start: number, depth: number): RlpItem[] {
  if (depth >= DEPTH_MAX) throw new Error("rlp: lists are nested too deep");
  const items: RlpItem[] = [];
  for (let at = start; at < input.length; ) {
    const { item, end } = readItem(input, at, depth + 1);
    items.push(item);
    at = end;
  }
  return items;
}
