import type { Block, BlockHead, ExecutedTransaction } from "../blocks/block.ts";
import { isSameBytes } from "@stele/eth/node";
import { Lru } from "../lib/lru.ts";
import { BLOCK_CACHE_BLOCKS_MAX, BLOCK_CACHE_BYTES_MAX } from "../limits.ts";
import { serverError } from "../rpc-error.ts";
import { type ChainDatabase, hasEntry } from "../storage/chain-database.ts";
import { fromPlace, toHashKey } from "../storage/places.ts";
import type { IndexEntry } from "../storage/unsaved-effects.ts";
import { findHead, readHead, readVerifiedBlock } from "./verified-blocks.ts";

/** A transaction with the block that contains it. */
export interface IncludedTransaction extends ExecutedTransaction {
  readonly head: BlockHead;
  readonly index: number;
}

const BLOCK_OVERHEAD_BYTES = 2_048;

/** Reads blocks and caches recently read ones. Compares transactions and receipts from the file with the hashes in their block's header. */
export class BlockReader {
  readonly #database: ChainDatabase;
  readonly #blocks = new Lru<bigint, Block>({ entriesMax: BLOCK_CACHE_BLOCKS_MAX, weightMax: BLOCK_CACHE_BYTES_MAX });

  constructor(database: ChainDatabase) {
    this.#database = database;
  }

  /** @throws BlockDamagedError if the header is malformed. */
  findHead(number: bigint): BlockHead | undefined {
    return this.#blocks.get(number) ?? findHead(this.#database, number);
  }

  /** The head of a block up to the newest one. @throws BlockDamagedError if the file lacks it, or it is malformed. */
  getHead(number: bigint): BlockHead {
    return this.#blocks.get(number) ?? readHead(this.#database, number);
  }

  /** @throws as readEntry. */
  findHeadByHash(hash: Uint8Array): BlockHead | undefined {
    const key = toHashKey(hash);
    for (const place of this.#database.readPlaces(key)) {
      const head = this.findHead(fromPlace(place).blockNumber);
      if (head !== undefined && isSameBytes(head.hash, hash)) return head;
      this.#readBlockOf({ key, place });
    }
    return undefined;
  }

  readExecuted(head: BlockHead): readonly ExecutedTransaction[] {
    return this.#readBlock(head.header.number).executed;
  }

  /** @throws as readEntry. */
  findTransaction(hash: Uint8Array): IncludedTransaction | undefined {
    const key = toHashKey(hash);
    for (const place of this.#database.readPlaces(key)) {
      const included = this.readEntry({ key, place });
      if (included !== undefined && isSameBytes(included.transaction.hash, hash)) return included;
    }
    return undefined;
  }

  /**
   * The transaction at the place of an index entry; undefined if the block is empty.
   * @throws BlockDamagedError; ProviderRpcError if the chain lacks the block, or if the block lacks the entry: then the index is damaged.
   */
  readEntry(entry: IndexEntry): IncludedTransaction | undefined {
    const block = this.#readBlockOf(entry);
    const { index } = fromPlace(entry.place);
    const executed = block.executed[index];
    return executed === undefined ? undefined : { ...executed, head: block, index };
  }

  #readBlockOf(entry: IndexEntry): Block {
    const { blockNumber } = fromPlace(entry.place);
    const block = this.#hasBlock(blockNumber) ? this.#readBlock(blockNumber) : undefined;
    if (block !== undefined && hasEntry(block, entry)) return block;
    throw serverError(
      `the chain's index of hashes and logs is damaged: block ${blockNumber} does not have one of its entries; the next check of the chain rebuilds it`,
    );
  }

  /** Whether the chain has the block, even if the file lacks its header. */
  #hasBlock(number: bigint): boolean {
    return this.findHead(number) !== undefined || number < (this.#database.findHead()?.header.number ?? 0n);
  }

  /** @throws BlockDamagedError. */
  #readBlock(number: bigint): Block {
    const known = this.#blocks.get(number);
    if (known !== undefined) return known;
    const block = readVerifiedBlock(this.#database, number);
    this.#blocks.set(number, block, weigh(block));
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
