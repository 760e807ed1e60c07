import type { Block, BlockHead, ExecutedTransaction } from "../blocks/block.ts";
import { Lru } from "../lib/lru.ts";
import { BLOCK_CACHE_BLOCKS_MAX, BLOCK_CACHE_BYTES_MAX } from "../limits.ts";
import type { ChainDatabase } from "../storage/chain-database.ts";
import { fromPlace, type Place } from "../storage/places.ts";
import { readVerifiedBlock } from "./verified-blocks.ts";

/** A transaction with the block that it stands in. */
export interface IncludedTransaction extends ExecutedTransaction {
  readonly head: BlockHead;
  readonly index: number;
}

const BLOCK_OVERHEAD_BYTES = 2_048;

/** Reads blocks, the newest from memory. Transactions and receipts from the file are compared with the hashes of their block. */
export class BlockReader {
  readonly #database: ChainDatabase;
  readonly #blocks = new Lru<bigint, Block>({ entriesMax: BLOCK_CACHE_BLOCKS_MAX, weightMax: BLOCK_CACHE_BYTES_MAX });

  constructor(database: ChainDatabase) {
    this.#database = database;
  }

  /** Keeps a block that was just committed, or compared with its hashes. */
  remember(block: Block): void {
    this.#blocks.set(block.header.number, block, weigh(block));
  }

  findHead(number: bigint): BlockHead | undefined {
    return this.#blocks.get(number) ?? this.#database.findBlockHead(number);
  }

  findHeadByHash(hash: Uint8Array): BlockHead | undefined {
    return this.#database.findBlockHeadByHash(hash);
  }

  readExecuted(head: BlockHead): readonly ExecutedTransaction[] {
    return this.#readBlock(head.header.number).executed;
  }

  findTransaction(hash: Uint8Array): IncludedTransaction | undefined {
    const placed = this.#database.findPlacedByHash(hash);
    return placed === undefined ? undefined : this.findAt(placed.place);
  }

  findAt(place: Place): IncludedTransaction | undefined {
    const { blockNumber, index } = fromPlace(place);
    if (this.findHead(blockNumber) === undefined) return undefined;
    const block = this.#readBlock(blockNumber);
    const executed = block.executed[index];
    return executed === undefined ? undefined : { ...executed, head: block, index };
  }

  /** @throws BlockDamagedError. */
  #readBlock(number: bigint): Block {
    const known = this.#blocks.get(number);
    if (known !== undefined) return known;
    const block = readVerifiedBlock(this.#database, number);
    this.remember(block);
    return block;
  }
}

function weigh(block: Block): number {
  return block.executed.reduce(
    (bytes, { transaction, receipt }) =>
      bytes +
      transaction.raw.length * 2 +
      receipt.logs.reduce((sum, log) => sum + log.data.length + BLOCK_OVERHEAD_BYTES / 8, 0),
    BLOCK_OVERHEAD_BYTES,
  );
}
