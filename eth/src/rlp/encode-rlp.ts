import { listBytes, RlpWriter, stringBytes } from "./rlp-writer.ts";

/** A value that RLP can encode: a byte string or a list of such values (Yellow Paper, appendix B). */
export type RlpItem = Uint8Array | readonly RlpItem[];

const none = new Uint8Array(0);

/** Encodes `item` into one buffer, so that each string is copied only once, however deep its list is nested. `prefix` goes before the item. */
export function encodeRlp(item: RlpItem, prefix: Uint8Array = none): Buffer {
  if (item instanceof Uint8Array) return encodeString(item, prefix);
  const lists: number[] = [];
  const output = Buffer.allocUnsafe(prefix.length + measure(item, lists));
  const writer = new RlpWriter(output);
  writer.raw(prefix);
  new ItemWriter(writer, lists).write(item);
  return output;
}

function encodeString(content: Uint8Array, prefix: Uint8Array): Buffer {
  const output = Buffer.allocUnsafe(prefix.length + stringBytes(content));
  const writer = new RlpWriter(output);
  writer.raw(prefix);
  writer.string(content);
  return output;
}

/** Encoded size of an item. Adds the payload size of each of its lists to `lists`, in the order in which they begin, so that none is measured twice. */
function measure(item: RlpItem, lists: number[]): number {
  if (item instanceof Uint8Array) return stringBytes(item);
  const place = lists.push(0) - 1;
  let length = 0;
  for (const child of item) length += measure(child, lists);
  lists[place] = length;
  return listBytes(length);
}

class ItemWriter {
  readonly #writer: RlpWriter;
  readonly #lists: readonly number[];
  #next = 0;

  constructor(writer: RlpWriter, lists: readonly number[]) {
    this.#writer = writer;
    this.#lists = lists;
  }

  write(item: RlpItem): void {
    if (item instanceof Uint8Array) {
      this.#writer.string(item);
      return;
    }
    this.#writer.list(this.#lists[this.#next] ?? 0);
    this.#next += 1;
    for (const child of item) this.write(child);
  }
}

/** The header of a list whose items take `length` bytes. */
export function listHeader(length: number): Buffer {
  const header = Buffer.allocUnsafe(listBytes(length) - length);
  new RlpWriter(header).list(length);
  return header;
}
