import { toBuffer } from "../bytes.ts";
import { MalformedError } from "../malformed-error.ts";
import type { RlpItem } from "./encode-rlp.ts";
import { RlpReader } from "./rlp-reader.ts";

/** Maximum nesting depth of lists that `decodeRlp` accepts. */
const depthMax = 32;

/** Decodes the one item that fills `encoded`. Its byte strings are views of `encoded`. @throws MalformedError unless the encoding is canonical. */
export function decodeRlp(encoded: Uint8Array): RlpItem {
  const decoder = new Decoder(toBuffer(encoded));
  const item = decoder.read(0, { limit: encoded.length, depth: 0 });
  if (decoder.end !== encoded.length) throw new MalformedError(`bytes after the item, at byte ${decoder.end}`);
  return item;
}

interface ItemContext {
  /** End of the list that contains the item; outside all lists, end of the input. */
  readonly limit: number;
  readonly depth: number;
}

class Decoder {
  readonly #bytes: Buffer;
  readonly #reader: RlpReader;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#reader = new RlpReader(bytes);
  }

  /** End of the item that was read last. */
  get end(): number {
    return this.#reader.end;
  }

  read(at: number, { limit, depth }: ItemContext): RlpItem {
    const reader = this.#reader;
    if (!reader.isList(at, limit)) {
      reader.string(at, limit);
      return this.#bytes.subarray(reader.start, reader.end);
    }
    if (depth === depthMax) throw new MalformedError(`lists nested deeper than ${depthMax}, at byte ${at}`);
    reader.list(at, limit);
    const inside = { limit: reader.end, depth: depth + 1 };
    const items: RlpItem[] = [];
    for (let next = reader.start; next < inside.limit; next = reader.end) items.push(this.read(next, inside));
    return items;
  }
}
