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

/** The part of a chain that read-only methods need: of the chain itself, or of a snapshot of its file. */
export interface ReadableChain {
  readonly options: ReadOptions;
  readonly head: BlockHead;
  readonly blocks: BlockReader;
  /** The state after a block; undefined when it is no longer kept. */
  findState(blockNumber: bigint): StateView | undefined | Promise<StateView | undefined>;
  /** Places, in order, of the transactions in [from, to) that have a log under an index key. */
  readLogPlaces(key: number, from: Place, to: Place): Place[];
  findPending(hash: string): Transaction | undefined;
  /** The account's nonce in the newest state, plus its waiting transactions up to the first nonce gap. */
  nextNonce(address: Uint8Array): bigint;
}
