import type { EventBatch } from "../domain/event.ts";
import type { Address } from "../domain/topic.ts";

/** A block of a chain's file that is not what its hashes say, or cannot be read. */
export interface DamagedBlock {
  readonly number: number;
  readonly reason: string;
}

/** State of a block after an inspection; `repaired` if it was damaged before. */
export type BlockState = "intact" | "repaired" | "damaged";

/** A place in the chain's state, for whoever made it. */
export interface StatePlace {
  readonly account: string;
  readonly slot: string;
}

/** A part of the chain's state after a check. */
export interface CheckedState {
  /** Where the next check goes on; undefined at the end of the state. */
  readonly next: StatePlace | undefined;
  readonly nodes: number;
  /** A reason for each node or code that is damaged and stays so. */
  readonly damaged: readonly string[];
  /** Nodes and codes that were damaged, and were written again from memory. */
  readonly mended: number;
}

/** A step of a comparison of the chain's places with its blocks. */
export interface CheckedPlaces {
  readonly isMore: boolean;
  readonly entries: number;
  /** Whether they differed, and were derived anew. Known at the end. */
  readonly isDamaged: boolean;
}

/** A batch of the index, with the address of its topic. */
export type AddressedBatch = Pick<EventBatch, "transactionHash" | "logIndex" | "count" | "events"> & {
  readonly address: Address;
};

/** Looks for damage in a chain whose file is this process's own. */
export interface ChainCheck {
  /**
   * Holds blocks against their hashes, from a number on and as many as a short time allows. Answers the last that it looked at, and those that
   * are damaged; undefined above the newest block.
   */
  check(from: number): Promise<{ readonly upTo: number; readonly damaged: readonly DamagedBlock[] } | undefined>;
  /**
   * Makes the calls of a block's transactions anew from all its batches in the index, by which everything that stands elsewhere in a transaction
   * stays as it is. Answers whether the block fits its hashes then; if not, nothing has changed.
   */
  mend(blockNumber: number, batches: readonly AddressedBatch[]): Promise<boolean>;
  /**
   * Compares the chain's places, which say in which block a hash or a log stands, with its blocks: one short step, or the first of another
   * comparison. Derives them anew if they differ.
   */
  checkPlaces(isFirst: boolean): Promise<CheckedPlaces>;
  /** Compares nodes and code of the newest state with their hashes, from a place on and as many as a short time allows. */
  checkState(from: StatePlace | undefined): Promise<CheckedState>;
}
