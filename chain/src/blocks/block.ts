import { encodeRlp } from "../lib/rlp.ts";
import { fromBigint } from "../lib/bytes.ts";
import { EMPTY_TRIE_ROOT } from "../state/account.ts";
import { toNibbles } from "../state/trie/node.ts";
import { buildTrie } from "../state/trie/update.ts";
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

/** Root of the trie from index to item, as transactions and receipts have it. */
export function orderedRoot(items: readonly Uint8Array[]): Uint8Array {
  const entries = items.map((value, index) => ({ nibbles: toNibbles(encodeRlp(fromBigint(BigInt(index)))), value }));
  return buildTrie(entries) ?? EMPTY_TRIE_ROOT;
}
