import type { EventBatch } from "../domain/event.ts";
import type { Address } from "../domain/topic.ts";

/** A block in a chain's file that does not match its hashes, or cannot be read. */
export interface DamagedBlock {
  readonly number: number;
  readonly reason: string;
}

/** Result of inspecting a block and the next one: the worse of their two states. `repaired`: damaged before, intact now. */
export type BlockState = "intact" | "repaired" | "damaged";

/** A place in the chain's state. Callers only pass it back to `checkState` of the same ChainCheck. */
export interface StatePlace {
  readonly account: string;
  readonly slot: string;
}

/** A part of the chain's state after a check. */
export interface CheckedState {
  /** Where the next check continues; undefined at the end of the state. */
  readonly next: StatePlace | undefined;
  /** Number of trie nodes and contract codes that were compared. */
  readonly nodes: number;
  /** A reason for each trie node or contract's code that remains damaged. */
  readonly damaged: readonly string[];
  /** Number of trie nodes and contract codes that were damaged and have been rewritten from memory. */
  readonly repaired: number;
}

/** Result of one step that compares the chain's index of hashes and logs with its blocks. */
export interface CheckedIndexEntries {
  readonly isMore: boolean;
  readonly entries: number;
  /** Whether the index differed and was rebuilt. Known only at the end. */
  readonly isDamaged: boolean;
}

/** A batch of the store's index, with the address of its topic. */
export type AddressedBatch = Pick<EventBatch, "transactionHash" | "logIndex" | "count" | "events"> & {
  readonly address: Address;
};

/** Looks for damage in a chain whose file is this process's own. */
export interface ChainCheck {
  /**
   * Verifies blocks by their hashes, from number `from` on, as many as it can in a short time. Returns the last verified number, and the damaged
   * blocks; undefined if `from` is above the newest block.
   */
  check(from: number): Promise<{ readonly upTo: number; readonly damaged: readonly DamagedBlock[] } | undefined>;
  /**
   * Repairs a block from `batches`: the batches of the block whose events the store's index still has. Rewrites the calldata of the block's transactions
   * and, if that is not enough, short events in their receipts. Returns whether the block then matches its hashes; if not, nothing has changed.
   */
  repair(blockNumber: number, batches: readonly AddressedBatch[]): Promise<boolean>;
  /**
   * Compares the chain's index of hashes and logs with its blocks. Each call is one short step; `isFirst` begins a new
   * comparison. Rebuilds the index from the blocks if it differs.
   */
  checkIndexEntries(isFirst: boolean): Promise<CheckedIndexEntries>;
  /**
   * Compares trie nodes and contract code of the newest state with their hashes, from place `from` on (undefined: from the beginning), as many as it can in a
   * short time. Rewrites damaged trie nodes and code that are still in memory.
   */
  checkState(from: StatePlace | undefined): Promise<CheckedState>;
}
