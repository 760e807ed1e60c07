import type { BlockRange, CheckedBlocks, DamagedBlock } from "../messages.ts";
import type { ChainDatabase } from "../storage/chain-database.ts";
import { isReadFault } from "../storage/transient-fault.ts";
import { BlockDamagedError, readVerifiedBlocks } from "./verified-blocks.ts";

/** Compares blocks with their hashes until they amount to `bytesMax` bytes. Continues after a damaged block. */
export function checkBlocks(database: ChainDatabase, { from, to, bytesMax }: BlockRange): CheckedBlocks {
  const damaged: DamagedBlock[] = [];
  let number = from;
  for (let bytes = 0; number <= to && bytes < bytesMax; number += 1n) {
    try {
      for (const block of readVerifiedBlocks(database, { from: number, to: number, bytesMax })) bytes += block.length;
    } catch (error) {
      damaged.push({ number: Number(number), reason: reasonOf(number, error) });
    }
  }
  return { upTo: Number(number) - 1, damaged };
}

/**
 * Says why a block is damaged. A block that cannot be read counts as damaged.
 * @throws any other error.
 */
function reasonOf(number: bigint, error: unknown): string {
  if (error instanceof BlockDamagedError) return error.message;
  if (isReadFault(error)) return `Block ${number} of the chain cannot be read: ${error.message}.`;
  throw error;
}
