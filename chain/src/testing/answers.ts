import type { Hex } from "viem";

// Results of JSON-RPC methods, with only the fields that tests use.

export interface TransactionAnswer {
  readonly hash: Hex;
  readonly blockHash: Hex;
}

export interface LogAnswer {
  readonly transactionHash: Hex;
  readonly logIndex: Hex;
}

export interface ReceiptAnswer {
  readonly transactionHash: Hex;
  readonly gasUsed: Hex;
  readonly cumulativeGasUsed: Hex;
  readonly logsBloom: Hex;
  readonly logs: readonly LogAnswer[];
}

export interface BlockAnswer {
  readonly hash: Hex;
  readonly number: Hex;
  readonly parentHash: Hex;
  readonly stateRoot: Hex;
  readonly gasLimit: Hex;
}

export interface FullBlockAnswer extends BlockAnswer {
  readonly transactions: readonly TransactionAnswer[];
}

export interface FeeHistoryAnswer {
  readonly oldestBlock: Hex;
  readonly baseFeePerGas: readonly Hex[];
  readonly gasUsedRatio: readonly number[];
  readonly reward: readonly Hex[][];
}

export interface ProofAnswer {
  readonly nonce: Hex;
  readonly storageHash: Hex;
  readonly accountProof: readonly Hex[];
  readonly storageProof: readonly { readonly value: Hex; readonly proof: readonly Hex[] }[];
}
