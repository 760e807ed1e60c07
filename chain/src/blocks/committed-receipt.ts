import { type Hex, RlpReader } from "@stele/eth";

/** A log of a committed block. Address and topics are in lower case. */
export interface CommittedLog {
  readonly address: Hex;
  readonly topics: readonly Hex[];
  /** A view of the buffer that holds the whole block. */
  readonly data: Buffer;
}

/** The part of a receipt that the chain's owner needs. */
export interface CommittedReceipt {
  /** False if the execution failed; then there are no logs. */
  readonly isSuccess: boolean;
  readonly logs: readonly CommittedLog[];
}

const LIST_PREFIX_MIN = 0xc0;

/** Reads a receipt of the receipts trie. Creates no RLP items on the way: a block with many topics consists mostly of logs. */
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
  const texts = new RepeatedTexts(receipt);
  const logs: CommittedLog[] = [];
  const { end } = reader;
  for (let at = reader.start; at < end; ) {
    reader.list(at, end);
    at = reader.end;
    reader.string(reader.start, at);
    const address = texts.at(0, reader);
    reader.list(reader.end, at);
    const topics = readTopics(reader, texts);
    reader.string(reader.end, at);
    logs.push({ address, topics, data: receipt.subarray(reader.start, reader.end) });
  }
  return logs;
}

/** Reads the topics in the list that the reader entered last. Leaves the reader at their end. */
function readTopics(reader: RlpReader, texts: RepeatedTexts): Hex[] {
  const topics: Hex[] = [];
  const { end } = reader;
  for (let at = reader.start; at < end; at = reader.end) {
    reader.string(at, end);
    topics.push(texts.at(1 + topics.length, reader));
  }
  return topics;
}

/** Hex texts of fields that are mostly the same from log to log: the registry, the kind of the log, the publisher. Keeps the last text of each field. */
class RepeatedTexts {
  readonly #bytes: Buffer;
  readonly #last: { readonly start: number; readonly end: number; readonly text: Hex }[] = [];

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** The bytes between `start` and `end` as hex. `place` numbers the field within a log. */
  at(place: number, { start, end }: RlpReader): Hex {
    const last = this.#last[place];
    if (last !== undefined && this.#isSame(last, start, end)) return last.text;
    const text: Hex = `0x${this.#bytes.toString("hex", start, end)}`;
    this.#last[place] = { start, end, text };
    return text;
  }

  /** Whether `last` has the bytes between `start` and `end`. Compares from the end, because words mostly differ there. */
  #isSame(last: { readonly start: number; readonly end: number }, start: number, end: number): boolean {
    if (last.end - last.start !== end - start) return false;
    for (let at = end - 1; at >= start; at -= 1) {
      if (this.#bytes[at] !== this.#bytes[last.start + at - start]) return false;
    }
    return true;
  }
}
