import type { Address } from "../domain/topic.ts";

/** Which event a proof is wanted of: a batch by its topic's contract and first sequence, and the event's place in it. */
export interface ProofPlace {
  readonly address: Address;
  readonly blockNumber: number;
  readonly firstSequence: number;
  /** From 0. */
  readonly index: number;
}

/** What ties an event to the hash of its block. */
export interface ChainProof {
  /** The registry that the topic belongs to. */
  readonly registry: Address;
  /** The account that published the event. */
  readonly publisher: Address;
  /** Sibling hashes from the event's leaf up to the batch's eventsRoot. */
  readonly path: readonly Uint8Array[];
  readonly transactionIndex: number;
  /** Place of the batch's log in its receipt, from 0. */
  readonly logPlace: number;
  /** Nodes of the receipts trie from its root down to the leaf that holds the receipt. */
  readonly nodes: readonly Uint8Array[];
  /** RLP of the block's header. */
  readonly header: Uint8Array;
}
