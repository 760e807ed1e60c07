import { type Hex, RlpReader } from "@stele/eth";

/** A log of a committed block. Address and topics are in lower case. */
export interface CommittedLog {
  readonly address: Hex;
  readonly topics: readonly Hex[];
  /** A view of the buffer that holds the whole block. */
  readonly data: Buffer;
}

/** The fields of a receipt that the chain's owner needs. The owner runs outside the chain's worker thread. */
export interface CommittedReceipt {
  /** False if the execution failed; then there are no logs. */
  readonly isSuccess: boolean;
  readonly logs: readonly CommittedLog[];
}

const LIST_PREFIX_MIN = 0xc0;

/**
 * Reads an encoded receipt. Creates no object per RLP item, for speed: a block with events of many Stele topics has thousands of RLP items, almost all in logs.
 */
export function readCommittedReceipt(receipt: Buffer): CommittedReceipt {
  const reader = new RlpReader(receipt);
  // A typed receipt has its type before the list (EIP-2718).
  reader.list((receipt[0] ?? 0) < LIST_PREFIX_MIN ? 1 : 0, receipt.length);
  const { end } = reader;
  reader.string(reader.start, end);
  const isSuccess = reader.end > reader.start;
  reader.string(reader.end, end); // gas
  reader.string(reader.end, end); // bloom
  reader.list(reader.end, end);
  return { isSuccess, logs: readLogs(receipt, reader) };
}

/** Reads the logs in the list that the reader entered last. */
function readLogs(receipt: Buffer, reader: RlpReader): CommittedLog[] {
  const fields = new HexFields(receipt);
  const logs: CommittedLog[] = [];
  const { end } = reader;
  for (let at = reader.start; at < end; ) {
    reader.list(at, end);
    at = reader.end;
    reader.string(reader.start, at);
    const address = fields.toHex(0, reader);
    reader.list(reader.end, at);
    const topics = readTopics(reader, fields);
    reader.string(reader.end, at);
    logs.push({ address, topics, data: receipt.subarray(reader.start, reader.end) });
  }
  return logs;
}

/** Reads the topics in the list that the reader entered last. Leaves the reader at their end. */
function readTopics(reader: RlpReader, fields: HexFields): Hex[] {
  const topics: Hex[] = [];
  const { end } = reader;
  for (let at = reader.start; at < end; at = reader.end) {
    reader.string(at, end);
    topics.push(fields.toHex(1 + topics.length, reader));
  }
  return topics;
}

/**
 * Converts fields of logs to hex. Keeps the last text of each field, because successive logs mostly have the same registry, event signature and publisher.
 */
class HexFields {
  readonly #bytes: Buffer;
  readonly #last: { readonly start: number; readonly end: number; readonly text: Hex }[] = [];

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** The bytes between `start` and `end` as hex. `place` is the field's index in its log. */
  toHex(place: number, { start, end }: RlpReader): Hex {
    const last = this.#last[place];
    if (last !== undefined && this.#isSame(last, start, end)) return last.text;
    const text: Hex = `0x${this.#bytes.toString("hex", start, end)}`;
    this.#last[place] = { start, end, text };
    return text;
  }

  /** Whether `last` has the same bytes as `start` to `end`. Compares from the end: two padded 32-byte values mostly differ in their last bytes. */
  #isSame(last: { readonly start: number; readonly end: number }, start: number, end: number): boolean {
    if (last.end - last.start !== end - start) return false;
    for (let at = end - 1; at >= start; at -= 1) {
      if (this.#bytes[at] !== this.#bytes[last.start + at - start]) return false;
    }
    return true;
  }
}
