import * as eth from "@stele/eth/node";
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

/** The receipt as the receipts trie holds it. */
export function encodeReceipt(
  receipt: Receipt,
  type: Transaction["type"],
  bloom = createBloom(receipt.logs),
): Uint8Array {
  const { isSuccess, cumulativeGasUsed, logs } = receipt;
  return eth.encodeReceipt({
    type,
    outcome: isSuccess ? Uint8Array.of(1) : eth.emptyBytes,
    cumulativeGasUsed,
    bloom,
    logs,
  });
}
