import type { Header } from "./header.ts";
import type { Receipt } from "./receipt.ts";
import type { Transaction } from "./transaction.ts";

export interface ExecutedTransaction {
  readonly transaction: Transaction;
  readonly receipt: Receipt;
}

export interface BlockHead {
  readonly hash: Uint8Array;
  readonly header: Header;
}

export interface Block extends BlockHead {
  readonly executed: readonly ExecutedTransaction[];
}
