import type { BlockHead } from "../blocks/block.ts";
import type { Transaction } from "../blocks/transaction.ts";
import type { StateView } from "../state/state-view.ts";
import type { Place } from "../storage/places.ts";
import type { BlockReader } from "./block-reader.ts";

/** Settings that bound what one request may cost. */
export interface ReadOptions {
  readonly chainId: number;
  readonly callGasMax: bigint;
  readonly callTimeMsMax: number;
}

/** What the methods that only read need of a chain: the chain itself, or a snapshot of its file. */
export interface ReadableChain {
  readonly options: ReadOptions;
  readonly head: BlockHead;
  readonly blocks: BlockReader;
  /** The state after a block; undefined when it is no longer kept. */
  findState(blockNumber: bigint): StateView | undefined | Promise<StateView | undefined>;
  /** Transactions in [from, to) with a log under an index key, in order. */
  readLogPlaces(key: number, from: Place, to: Place): Place[];
  findPending(hash: string): Transaction | undefined;
  /** The nonce after the newest state and the transactions that wait without a gap. */
  nextNonce(address: Uint8Array): bigint;
}
