import { isSameBytes, orderedRoot } from "@stele/eth/node";
import type { Block, BlockHead, ExecutedTransaction } from "../blocks/block.ts";
import { encodeCommittedBlock } from "../blocks/committed-block.ts";
import { encodeReceipt } from "../blocks/receipt.ts";
import { ChainDamagedError } from "../chain-damaged-error.ts";
import type { BlockRange } from "../messages.ts";
import { isTransientFault } from "../storage/transient-fault.ts";

/** The part of ChainDatabase that this file uses. Not imported, since the module of ChainDatabase imports this file. */
interface StoredBlocks {
  findBlockHead(number: bigint): BlockHead | undefined;
  readExecuted(number: bigint): ExecutedTransaction[];
}

/** A block in the file is missing, cannot be decoded, or does not match its hashes. */
export class BlockDamagedError extends ChainDamagedError {
  constructor(number: bigint, what: string, cause?: unknown) {
    super(`Block ${number} of the chain is damaged: ${what.replace(/\.$/, "")}.`, cause);
    this.name = "BlockDamagedError";
  }
}

/**
 * Reads blocks, and verifies the parent hash, the transactionsRoot and the receiptsRoot of each. Returns them as `encodeCommittedBlock` encodes them.
 * @throws BlockDamagedError for the first block that is missing, does not match or is malformed.
 */
export function readVerifiedBlocks(database: StoredBlocks, { from, to, bytesMax }: BlockRange): Uint8Array[] {
  const blocks: Uint8Array[] = [];
  let before = from === 0n ? undefined : readHead(database, from - 1n);
  let bytes = 0;
  for (let number = from; number <= to && (bytes < bytesMax || number === from); number += 1n) {
    const { block, receipts } = readOrReport(number, () => readBlock(database, number, before));
    const encoded = encodeCommittedBlock(block, receipts);
    blocks.push(encoded);
    bytes += encoded.length;
    before = block;
  }
  return blocks;
}

/** Reads one block, and verifies its transactionsRoot, its receiptsRoot, and its hash by the next header. @throws BlockDamagedError. */
export function readVerifiedBlock(database: StoredBlocks, number: bigint): Block {
  const { block } = readOrReport(number, () => readBlock(database, number, undefined));
  const next = findHead(database, number + 1n);
  if (next !== undefined && !isSameBytes(next.header.parentHash, block.hash)) {
    throw new BlockDamagedError(number, "its hash is not the next header's parent hash, or that header is damaged");
  }
  return block;
}

function readBlock(database: StoredBlocks, number: bigint, before: BlockHead | undefined) {
  const head = readHead(database, number);
  const { parentHash, transactionsRoot, receiptsRoot } = head.header;
  if (before !== undefined && !isSameBytes(parentHash, before.hash)) {
    throw new BlockDamagedError(number, "its parent is not the block before it, or the block before it is damaged");
  }
  const executed = database.readExecuted(number);
  const receipts = executed.map(({ transaction, receipt }) => encodeReceipt(receipt, transaction.type));
  if (!isSameBytes(orderedRoot(executed.map(({ transaction }) => transaction.raw)), transactionsRoot)) {
    throw new BlockDamagedError(number, "its transactions do not hash to its transactionsRoot");
  }
  if (!isSameBytes(orderedRoot(receipts), receiptsRoot)) {
    throw new BlockDamagedError(number, "its receipts do not hash to its receiptsRoot");
  }
  const block: Block = { ...head, executed };
  return { block, receipts };
}

/** Reads the header of a block; undefined if the file lacks it. @throws BlockDamagedError if it is malformed. */
export function findHead(database: Pick<StoredBlocks, "findBlockHead">, number: bigint): BlockHead | undefined {
  return readOrReport(number, () => database.findBlockHead(number));
}

/** Reads the header of a block that the chain has. @throws BlockDamagedError if it is missing or malformed, or is that of another block. */
export function readHead(database: Pick<StoredBlocks, "findBlockHead">, number: bigint): BlockHead {
  const head = findHead(database, number);
  if (head?.header.number !== number)
    throw new BlockDamagedError(number, "its header is missing, or is that of another block");
  return head;
}

/** Runs a read of a stored block. A permanent failure means damage, since one transaction writes the whole block. */
function readOrReport<Result>(number: bigint, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    if (error instanceof BlockDamagedError || isTransientFault(error)) throw error;
    throw new BlockDamagedError(number, error instanceof Error ? error.message : String(error), error);
  }
}
