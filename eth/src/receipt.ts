import { emptyBytes, fromInteger } from "./bytes.ts";
import { encodeRlp } from "./rlp/encode-rlp.ts";

export interface ReceiptFields {
  /** Type of the transaction (EIP-2718); 0 for a legacy one. */
  readonly type: number;
  /** The status: the byte 1 for success, empty for failure. Before Byzantium, the state root. */
  readonly outcome: Uint8Array;
  readonly cumulativeGasUsed: bigint;
  readonly bloom: Uint8Array;
  readonly logs: readonly ReceiptFieldsLog[];
}

export interface ReceiptFieldsLog {
  readonly address: Uint8Array;
  readonly topics: readonly Uint8Array[];
  readonly data: Uint8Array;
}

/** Encodes a receipt as the receipts trie contains it. */
export function encodeReceipt({ type, outcome, cumulativeGasUsed, bloom, logs }: ReceiptFields): Buffer {
  const items = [
    outcome,
    fromInteger(cumulativeGasUsed),
    bloom,
    logs.map((log) => [log.address, log.topics, log.data]),
  ];
  return encodeRlp(items, type === 0 ? emptyBytes : Uint8Array.of(type));
}
