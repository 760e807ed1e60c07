import {
  emptyTrieRoot,
  encodeRlp,
  fromInteger,
  type Hex,
  keccak256,
  padStart,
  toHex,
  toQuantity,
} from "@stele/eth/node";
import type { BlockHead, ExecutedTransaction } from "../blocks/block.ts";
import { createBloom } from "../blocks/bloom.ts";
import { COINBASE, EMPTY_OMMERS_HASH, encodeHeader, HEADER_NONCE, ZERO_HASH } from "../blocks/header.ts";
import type { Log } from "../blocks/log.ts";
import { effectiveGasPrice, type Transaction } from "../blocks/transaction.ts";
import type { IncludedTransaction } from "../chain/block-reader.ts";

const ADDRESS_OFFSET = 12;

/** A header as `newHeads` gives it. */
export function formatHeader({ hash, header }: BlockHead): Record<string, unknown> {
  return {
    hash: toHex(hash),
    parentHash: toHex(header.parentHash),
    sha3Uncles: toHex(EMPTY_OMMERS_HASH),
    miner: toHex(COINBASE),
    stateRoot: toHex(header.stateRoot),
    transactionsRoot: toHex(header.transactionsRoot),
    receiptsRoot: toHex(header.receiptsRoot),
    logsBloom: toHex(header.logsBloom),
    difficulty: "0x0",
    number: toQuantity(header.number),
    gasLimit: toQuantity(header.gasLimit),
    gasUsed: toQuantity(header.gasUsed),
    timestamp: toQuantity(header.timestamp),
    extraData: "0x",
    mixHash: toHex(ZERO_HASH),
    nonce: toHex(HEADER_NONCE),
    baseFeePerGas: toQuantity(header.baseFeePerGas),
    withdrawalsRoot: toHex(emptyTrieRoot),
    blobGasUsed: "0x0",
    excessBlobGas: "0x0",
    parentBeaconBlockRoot: toHex(ZERO_HASH),
  };
}

/** Formats a block; `transactions` is what it says of each transaction. */
export function formatBlock(
  head: BlockHead,
  executed: readonly ExecutedTransaction[],
  transactions: readonly unknown[],
): Record<string, unknown> {
  return {
    ...formatHeader(head),
    totalDifficulty: "0x0",
    size: toQuantity(countBytes(head, executed)),
    transactions,
    uncles: [],
    withdrawals: [],
  };
}

function countBytes(head: BlockHead, executed: readonly ExecutedTransaction[]): number {
  const bodies = executed.map(({ transaction }) => listItemBytes(transaction));
  const transactions = listBytes(bodies.reduce((sum, bytes) => sum + bytes, 0));
  return listBytes(encodeHeader(head.header).length + transactions + 2);
}

function listItemBytes({ raw, type }: Transaction): number {
  return type === 0 ? raw.length : listBytes(raw.length);
}

/** Bytes of an RLP list or string that contains this many bytes. */
function listBytes(inside: number): number {
  return inside < 56 ? inside + 1 : inside + 1 + fromInteger(BigInt(inside)).length;
}

export function formatTransaction({ transaction, receipt, head, index }: IncludedTransaction): Record<string, unknown> {
  return {
    ...formatUnplaced(transaction),
    gasPrice: toQuantity(receipt.effectiveGasPrice),
    blockHash: toHex(head.hash),
    blockNumber: toQuantity(head.header.number),
    blockTimestamp: toQuantity(head.header.timestamp),
    transactionIndex: toQuantity(index),
  };
}

export function formatPending(transaction: Transaction, baseFeePerGas: bigint): Record<string, unknown> {
  return {
    ...formatUnplaced(transaction),
    gasPrice: toQuantity(effectiveGasPrice(transaction, baseFeePerGas)),
    blockHash: null,
    blockNumber: null,
    transactionIndex: null,
  };
}

function formatUnplaced(transaction: Transaction): Record<string, unknown> {
  const { type, v } = transaction;
  return {
    type: toQuantity(type),
    hash: toHex(transaction.hash),
    from: toHex(transaction.sender),
    to: transaction.to === undefined ? null : toHex(transaction.to),
    nonce: toQuantity(transaction.nonce),
    gas: toQuantity(transaction.gasLimit),
    value: toQuantity(transaction.value),
    input: toHex(transaction.data),
    ...(transaction.chainId === undefined ? {} : { chainId: toQuantity(transaction.chainId) }),
    ...(type === 0 ? {} : { accessList: transaction.accessList.map(formatAccess), yParity: toQuantity(v) }),
    ...(type === 2 ? formatFees(transaction) : {}),
    v: toQuantity(v),
    r: toQuantity(BigInt(toHex(padStart(transaction.r, 1)))),
    s: toQuantity(BigInt(toHex(padStart(transaction.s, 1)))),
  };
}

function formatAccess({ address, slots }: Transaction["accessList"][number]): Record<string, unknown> {
  return { address: toHex(address), storageKeys: slots.map(toHex) };
}

function formatFees({ maxFeePerGas, maxPriorityFeePerGas }: Transaction): Record<string, unknown> {
  return { maxFeePerGas: toQuantity(maxFeePerGas), maxPriorityFeePerGas: toQuantity(maxPriorityFeePerGas) };
}

export function formatReceipt(included: IncludedTransaction): Record<string, unknown> {
  const { transaction, receipt, head, index } = included;
  const { to, sender, nonce } = transaction;
  return {
    type: toQuantity(transaction.type),
    status: receipt.isSuccess ? "0x1" : "0x0",
    transactionHash: toHex(transaction.hash),
    transactionIndex: toQuantity(index),
    blockHash: toHex(head.hash),
    blockNumber: toQuantity(head.header.number),
    from: toHex(sender),
    to: to === undefined ? null : toHex(to),
    gasUsed: toQuantity(receipt.gasUsed),
    cumulativeGasUsed: toQuantity(receipt.cumulativeGasUsed),
    effectiveGasPrice: toQuantity(receipt.effectiveGasPrice),
    contractAddress: to === undefined && receipt.isSuccess ? toContractAddress(sender, nonce) : null,
    logs: receipt.logs.map((log, at) => formatLog(log, at, included)),
    logsBloom: toHex(createBloom(receipt.logs)),
  };
}

function toContractAddress(sender: Uint8Array, nonce: bigint): Hex {
  return toHex(keccak256(encodeRlp([sender, fromInteger(nonce)])).subarray(ADDRESS_OFFSET));
}

/** Formats a log; `at` is its index in the transaction. */
export function formatLog(
  log: Log,
  at: number,
  { transaction, receipt, head, index }: IncludedTransaction,
): Record<string, unknown> {
  return {
    address: toHex(log.address),
    topics: log.topics.map(toHex),
    data: toHex(log.data),
    blockHash: toHex(head.hash),
    blockNumber: toQuantity(head.header.number),
    blockTimestamp: toQuantity(head.header.timestamp),
    transactionHash: toHex(transaction.hash),
    transactionIndex: toQuantity(index),
    logIndex: toQuantity(receipt.firstLogIndex + at),
    removed: false,
  };
}
