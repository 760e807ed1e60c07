import type { BlockHead } from "../blocks/block.ts";
import type { Transaction } from "../blocks/transaction.ts";
import { BlockReader } from "../chain/block-reader.ts";
import type { ReadableChain, ReadOptions } from "../chain/readable-chain.ts";
import { CheckedSource } from "../state/checked-source.ts";
import { createPastView } from "../state/past-view.ts";
import type { StateHistory } from "../state/state-history.ts";
import { type StateSource, StateView } from "../state/state-view.ts";
import type { ChainDatabase } from "../storage/chain-database.ts";
import type { Place } from "../storage/places.ts";

export interface SnapshotParts {
  readonly database: ChainDatabase;
  readonly options: ReadOptions;
  /** Reads the nodes that recent blocks overwrote, at least up to block `upTo`. */
  readonly readHistory: (upTo: bigint) => Promise<StateHistory>;
}

/** The chain as its file has it, within one SQL transaction. Transactions that wait for a block are not in the file. */
export class ChainSnapshot implements ReadableChain {
  readonly options: ReadOptions;
  readonly head: BlockHead;
  readonly blocks: BlockReader;
  readonly #parts: SnapshotParts;
  readonly #source: StateSource;

  constructor(parts: SnapshotParts) {
    const { database } = parts;
    const head = database.findHead();
    if (head === undefined) throw new Error("The chain has no block.");
    this.options = parts.options;
    this.head = head;
    this.blocks = new BlockReader(database);
    this.#parts = parts;
    this.#source = new CheckedSource(database);
  }

  async findState(blockNumber: bigint): Promise<StateView | undefined> {
    const newest = this.head.header.number;
    if (blockNumber === newest) return this.#newestState();
    const head = this.blocks.findHead(blockNumber);
    if (head === undefined) return undefined;
    const history = await this.#parts.readHistory(newest);
    const overwritten = history.findSince(blockNumber, newest);
    return overwritten === undefined ? undefined : createPastView(this.#source, head.header.stateRoot, overwritten);
  }

  findPending(): Transaction | undefined {
    return undefined;
  }

  nextNonce(address: Uint8Array): bigint {
    return this.#newestState().findAccount(address)?.nonce ?? 0n;
  }

  readLogPlaces(key: number, from: Place, to: Place): Iterable<Place> {
    return this.#parts.database.readPlaces(key, from, to);
  }

  #newestState(): StateView {
    return new StateView(this.#source, this.head.header.stateRoot);
  }
}
