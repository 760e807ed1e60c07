import type { BlockHead } from "../blocks/block.ts";
import type { Transaction } from "../blocks/transaction.ts";
import type { StateView } from "../state/state-view.ts";
import type { Place } from "../storage/places.ts";
import type { BlockReader } from "./block-reader.ts";

/** The chain's id, and the limits of one call. */
export interface ReadOptions {
  readonly chainId: number;
  readonly callGasMax: bigint;
  readonly callTimeMsMax: number;
}

/** The part of a chain that read-only methods need. The chain itself implements it, and so does a snapshot of the chain's file. */
export interface ReadableChain {
  readonly options: ReadOptions;
  readonly head: BlockHead;
  readonly blocks: BlockReader;
  /** The state after a block; undefined if the chain lacks the block or no longer keeps its state. */
  findState(blockNumber: bigint): StateView | undefined | Promise<StateView | undefined>;
  /** Places, in order, of the transactions in [from, to) that have a log under an index key. */
  readLogPlaces(key: number, from: Place, to: Place): Iterable<Place>;
  findPending(hash: string): Transaction | undefined;
  /** The account's nonce in the newest state, plus its waiting transactions up to the first nonce gap. */
  nextNonce(address: Uint8Array): bigint;
}
