import { decodeRlp, emptyBytes, encodeRlp, fromInteger, type RlpItem, toBigint, toBuffer } from "@stele/eth/node";
import type { CopiedBytes, Log } from "./log.ts";
import type { Receipt } from "./receipt.ts";
import { findShared, type SharedBytes } from "./shared-bytes.ts";
import type { Transaction } from "./transaction.ts";

/** The parts of a stored receipt that the receipts trie proves. No hash covers the others: nobody reads them. */
export type StoredReceipt = Pick<Receipt, "isSuccess" | "cumulativeGasUsed" | "logs">;

/**
 * Encodes a receipt for the store. If log data repeats bytes of the transaction `raw`, stores a reference into `raw`: the bytes of an event are both input and
 * log data. Earlier builds of Stele, which may open the file again, read the sender, the gas, its price and the log index from here.
 */
export function encodeStoredReceipt(
  receipt: Receipt,
  { sender, raw }: Pick<Transaction, "sender" | "raw">,
): Uint8Array {
  const data = new LogDataEncoder(raw);
  return encodeRlp([
    sender,
    fromInteger(receipt.isSuccess ? 1n : 0n),
    fromInteger(receipt.gasUsed),
    fromInteger(receipt.cumulativeGasUsed),
    fromInteger(receipt.effectiveGasPrice),
    fromInteger(BigInt(receipt.firstLogIndex)),
    receipt.logs.map((log) => [log.address, log.topics, ...data.encode(log)]),
  ]);
}

/** Encodes the data of one log after another. `#from` is where the last data ended in the transaction: the next data mostly follows there. */
class LogDataEncoder {
  readonly #raw: Uint8Array;
  #from = 0;

  constructor(raw: Uint8Array) {
    this.#raw = raw;
  }

  encode({ data, copied }: Pick<Log, "data" | "copied">): Uint8Array[] {
    const shared = (copied && this.#place(copied)) ?? findShared(data, this.#raw, this.#from);
    if (shared === undefined) return [data];
    this.#from = shared.rawOffset + shared.length;
    return [
      data.subarray(0, shared.dataOffset),
      fromInteger(shared.rawOffset),
      fromInteger(shared.length),
      data.subarray(shared.dataOffset + shared.length),
    ];
  }

  /** Where the bytes are in the transaction; undefined if they are not from it. */
  #place({ buffer, byteOffset, dataOffset, length }: CopiedBytes): SharedBytes | undefined {
    const rawOffset = byteOffset - this.#raw.byteOffset;
    const isInside = buffer === this.#raw.buffer && rawOffset >= 0 && rawOffset + length <= this.#raw.length;
    return isInside ? { dataOffset, rawOffset, length } : undefined;
  }
}

export function decodeStoredReceipt(encoded: Uint8Array, raw: Uint8Array): StoredReceipt {
  const items = decodeRlp(encoded);
  if (items instanceof Uint8Array) throw malformed();
  const logs = items[6];
  if (logs === undefined || logs instanceof Uint8Array) throw malformed();
  return {
    isSuccess: asBytes(items[1]).length > 0,
    cumulativeGasUsed: toBigint(asBytes(items[3])),
    logs: logs.map((log) => decodeLog(log, raw)),
  };
}

function decodeLog(item: RlpItem, raw: Uint8Array): Log {
  if (item instanceof Uint8Array) throw malformed();
  const [address, topics, head, rawOffset, length, tail] = item;
  if (topics === undefined || topics instanceof Uint8Array) throw malformed();
  const start = asBytes(head);
  const log = { address: asBytes(address), topics: topics.map(asBytes) };
  if (rawOffset === undefined) return { ...log, data: start };
  const from = Number(toBigint(asBytes(rawOffset)));
  const shared = raw.subarray(from, from + Number(toBigint(asBytes(length))));
  return { ...log, data: Buffer.concat([start, toBuffer(shared), asBytes(tail ?? emptyBytes)]) };
}

function asBytes(item: RlpItem | undefined): Uint8Array {
  if (!(item instanceof Uint8Array)) throw malformed();
  return item;
}

function malformed(): Error {
  return new Error("A stored receipt is malformed.");
}
