import { encodeRlp } from "../lib/rlp.ts";
import { EMPTY_BYTES, fromBigint } from "../lib/bytes.ts";
import { createBloom } from "./bloom.ts";
import type { Log } from "./log.ts";
import type { Transaction } from "./transaction.ts";

export interface Receipt {
  readonly isSuccess: boolean;
  readonly gasUsed: bigint;
  readonly cumulativeGasUsed: bigint;
  readonly effectiveGasPrice: bigint;
  readonly logs: readonly Log[];
  /** Index of the first log within the block. */
  readonly firstLogIndex: number;
}

/** The receipt as the receipts trie holds it (EIP-2718 envelope, post-Byzantium status). */
export function encodeReceipt(
  receipt: Receipt,
  type: Transaction["type"],
  bloom = createBloom(receipt.logs),
): Uint8Array {
  const logs = receipt.logs.map(({ address, topics, data }) => [address, topics, data]);
  const status = receipt.isSuccess ? Uint8Array.of(1) : EMPTY_BYTES;
  const items = [status, fromBigint(receipt.cumulativeGasUsed), bloom, logs];
  return encodeRlp(items, type === 0 ? EMPTY_BYTES : Uint8Array.of(type));
}
