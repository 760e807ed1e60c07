import type { BlockRange, CheckedBlocks, DamagedBlock } from "../messages.ts";
import type { ChainDatabase } from "../storage/chain-database.ts";
import { BlockDamagedError, readVerifiedBlocks } from "./verified-blocks.ts";

/** Holds blocks against their hashes, as many as have `bytesMax` bytes, and goes on behind those that do not fit. */
export function checkBlocks(database: ChainDatabase, { from, to, bytesMax }: BlockRange): CheckedBlocks {
  const damaged: DamagedBlock[] = [];
  let number = from;
  for (let bytes = 0; number <= to && bytes < bytesMax; number += 1n) {
    try {
      for (const block of readVerifiedBlocks(database, { from: number, to: number, bytesMax })) bytes += block.length;
    } catch (error) {
      if (!(error instanceof BlockDamagedError)) throw error;
      damaged.push({ number: Number(number), reason: error.message });
    }
  }
  return { upTo: Number(number) - 1, damaged };
}
