import type { ExecutedTransaction } from "../blocks/block.ts";
import { decodeStoredReceipt } from "../blocks/receipt-codec.ts";
import { effectiveGasPrice, parseStoredTransaction } from "../blocks/transaction.ts";
import { BASE_FEE_PER_GAS } from "../limits.ts";

/** A stored transaction. `receipt` refers to bytes of `raw`, so both are decoded together. */
export interface TransactionRow {
  readonly place: number;
  readonly receipt: Uint8Array;
  readonly raw: Uint8Array;
}

/** Decodes all rows of a block. Computes what no hash of the block covers from what one does: a damaged byte then shows, or changes nothing. */
export function decodeExecuted(rows: readonly TransactionRow[]): ExecutedTransaction[] {
  const executed: ExecutedTransaction[] = [];
  let [gasBefore, firstLogIndex] = [0n, 0];
  for (const { raw, receipt: stored } of rows) {
    const transaction = parseStoredTransaction(raw);
    const proven = decodeStoredReceipt(stored, raw);
    const gasUsed = proven.cumulativeGasUsed - gasBefore;
    const gasPrice = effectiveGasPrice(transaction, BASE_FEE_PER_GAS);
    executed.push({ transaction, receipt: { ...proven, gasUsed, effectiveGasPrice: gasPrice, firstLogIndex } });
    gasBefore = proven.cumulativeGasUsed;
    firstLogIndex += proven.logs.length;
  }
  return executed;
}
