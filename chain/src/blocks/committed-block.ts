import { RlpList } from "@stele/eth";
import { emptyBytes, encodeRlp, fromInteger, toBigint, toBuffer } from "@stele/eth/node";
import type { Block } from "./block.ts";
import { type CommittedLog, readCommittedReceipt } from "./committed-receipt.ts";
import { decodeHeader, encodeHeader, type Header } from "./header.ts";

/** One transaction of a block that is synced to disk. */
export interface CommittedTransaction {
  readonly hash: Uint8Array;
  /** False if the execution failed; then there are no logs. */
  readonly isSuccess: boolean;
  /** Index in the block of the transaction's first log. */
  readonly firstLogIndex: number;
  readonly logs: readonly CommittedLog[];
}

/** A block that is synced to disk, with its transactions and their logs. */
export interface CommittedBlock {
  readonly hash: Uint8Array;
  readonly header: Header;
  readonly transactions: readonly CommittedTransaction[];
}

/**
 * Encodes a block for another thread. `receipts` are encoded as the receipts trie holds them; the result contains these bytes, so that no log is encoded again.
 * The result has an ArrayBuffer of its own, which can be transferred.
 */
export function encodeCommittedBlock(block: Block, receipts: readonly Uint8Array[]): Uint8Array {
  const transactions = block.executed.map(({ transaction, receipt }, index) => [
    transaction.hash,
    fromInteger(BigInt(receipt.firstLogIndex)),
    receipts[index] ?? emptyBytes,
  ]);
  const encoded = encodeRlp([block.hash, encodeHeader(block.header), transactions]);
  return encoded.byteLength === encoded.buffer.byteLength ? encoded : new Uint8Array(encoded);
}

export function decodeCommittedBlock(encoded: Uint8Array): CommittedBlock {
  const block = new RlpList(toBuffer(encoded));
  const [hash, header] = [block.string(), decodeHeader(block.string())];
  const items = block.list();
  const transactions: CommittedTransaction[] = [];
  while (!items.isAtEnd) transactions.push(readTransaction(items.list()));
  return { hash, header, transactions };
}

function readTransaction(item: RlpList): CommittedTransaction {
  const [hash, firstLogIndex] = [item.string(), item.string()];
  const receipt = readCommittedReceipt(toBuffer(item.string()));
  return { hash, firstLogIndex: Number(toBigint(firstLogIndex)), ...receipt };
}
