import type { Address, Hash } from "../domain/topic.ts";

/** Where the event to prove is. The topic's contract and the first sequence name its batch; `index` is its place in the batch. */
export interface ProofPlace {
  readonly address: Address;
  readonly blockNumber: number;
  /** The hash of that block. If left out, the proof may be for a block that a reorg removed a few seconds ago. */
  readonly blockHash?: Hash | undefined;
  readonly firstSequence: number;
  /** Index of the event in the batch, from 0. */
  readonly index: number;
}

/** Data that ties an event to the hash of its block. */
export interface ChainProof {
  /** The registry that the topic belongs to. */
  readonly registry: Address;
  /** The account that published the event. */
  readonly publisher: Address;
  /** Sibling hashes from the event's leaf up to the batch's eventsRoot. */
  readonly path: readonly Uint8Array[];
  readonly transactionIndex: number;
  /** Index of the batch's log in its receipt, from 0. */
  readonly logPlace: number;
  /** Nodes of the receipts trie from its root down to the leaf with the receipt. */
  readonly nodes: readonly Uint8Array[];
  /** RLP of the block header. */
  readonly header: Uint8Array;
}

/** The cause of 200206 for a block whose receipts are too long to prove its events. It does not mean damage. */
export class ReceiptsTooLong extends Error {
  override readonly name = "ReceiptsTooLong";

  constructor(bytesMax: number) {
    super(`its receipts are longer than ${bytesMax} bytes`);
  }
}
