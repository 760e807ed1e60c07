import { decodeRlp, emptyBytes, encodeRlp, fromInteger, type RlpItem, toBigint } from "@stele/eth/node";
import type { Block } from "./block.ts";
import { decodeHeader, encodeHeader, type Header } from "./header.ts";
import type { Log } from "./log.ts";

/** One transaction of a block that is synced to disk. */
export interface CommittedTransaction {
  readonly hash: Uint8Array;
  readonly sender: Uint8Array;
  /** False when the EVM ended it; then it has no logs. */
  readonly isSuccess: boolean;
  readonly gasUsed: bigint;
  /** Index in the block of its first log; the others follow. */
  readonly firstLogIndex: number;
  /** Views of one buffer that holds the whole block. */
  readonly logs: readonly Log[];
}

/** A block that is synced to disk, with all that its transactions logged. */
export interface CommittedBlock {
  readonly hash: Uint8Array;
  readonly header: Header;
  readonly transactions: readonly CommittedTransaction[];
}

/**
 * A block as one buffer, on its way between threads. `receipts` are those of the receipts trie: their logs are encoded already. The buffer
 * shares its memory with nothing, so that it can be handed over.
 */
export function encodeCommittedBlock(block: Block, receipts: readonly Uint8Array[]): Uint8Array {
  const transactions = block.executed.map(({ transaction, receipt }, index) => [
    transaction.hash,
    transaction.sender,
    fromInteger(receipt.gasUsed),
    fromInteger(BigInt(receipt.firstLogIndex)),
    receipts[index] ?? emptyBytes,
  ]);
  const encoded = encodeRlp([block.hash, encodeHeader(block.header), transactions]);
  return encoded.byteLength === encoded.buffer.byteLength ? encoded : new Uint8Array(encoded);
}

export function decodeCommittedBlock(encoded: Uint8Array): CommittedBlock {
  const [hash, header, transactions] = asList(decodeRlp(encoded));
  return {
    hash: asBytes(hash),
    header: decodeHeader(asBytes(header)),
    transactions: asList(transactions).map(decodeTransaction),
  };
}

function decodeTransaction(item: RlpItem): CommittedTransaction {
  const [hash, sender, gasUsed, firstLogIndex, receipt] = asList(item);
  const [status, , , logs] = asList(decodeRlp(withoutType(asBytes(receipt))));
  return {
    hash: asBytes(hash),
    sender: asBytes(sender),
    isSuccess: asBytes(status).length > 0,
    gasUsed: toBigint(asBytes(gasUsed)),
    firstLogIndex: Number(toBigint(asBytes(firstLogIndex))),
    logs: asList(logs).map(decodeLog),
  };
}

const LIST_PREFIX_MIN = 0xc0;

/** A typed receipt has its type before the list (EIP-2718). */
function withoutType(receipt: Uint8Array): Uint8Array {
  return (receipt[0] ?? 0) < LIST_PREFIX_MIN ? receipt.subarray(1) : receipt;
}

function decodeLog(item: RlpItem): Log {
  const [address, topics, data] = asList(item);
  return { address: asBytes(address), topics: asList(topics).map(asBytes), data: asBytes(data) };
}

function asBytes(item: RlpItem | undefined): Uint8Array {
  if (item instanceof Uint8Array) return item;
  throw malformed();
}

function asList(item: RlpItem | undefined): readonly RlpItem[] {
  if (item !== undefined && !(item instanceof Uint8Array)) return item;
  throw malformed();
}

function malformed(): Error {
  return new Error("A block on its way from the chain's thread is malformed.");
}
