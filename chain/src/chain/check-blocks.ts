import { isSameBytes, toBuffer } from "../lib/bytes.ts";
import { keccak256 } from "../lib/crypto.ts";
import type { BlockRange } from "../messages.ts";
import type { ChainDatabase } from "../storage/chain-database.ts";
import { BlockDamagedError, readVerifiedBlocks } from "./verified-blocks.ts";

/** A block that is not what its hashes say, or cannot be read. */
export interface DamagedBlock {
  readonly number: number;
  readonly reason: string;
}

export interface CheckedBlocks {
  /** The last block that was looked at. */
  readonly upTo: number;
  readonly damaged: readonly DamagedBlock[];
}

/** What a transaction called with, from another place than the chain, and the transaction's hash. */
export interface KnownCall {
  readonly hash: Uint8Array;
  readonly data: Uint8Array;
}

export interface BlockMending {
  readonly number: bigint;
  readonly calls: readonly KnownCall[];
}

/** Most bytes before a transaction's data: its other fields come first, and lengths. */
const FIELDS_BYTES_MAX = 160;

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

/**
 * Puts what is known of a block's calls in the place of what the file has, where a transaction then has its hash. The block is written only
 * when all of it fits its hashes again: answers whether it does.
 */
export function mendBlock(database: ChainDatabase, { number, calls }: BlockMending): boolean {
  return database.tryChange(() => {
    for (const { place, raw } of database.readRaw(number)) {
      const mended = findMended(raw, calls);
      if (mended !== undefined) database.replaceRaw(place, mended);
    }
    try {
      return readVerifiedBlocks(database, { from: number, to: number, bytesMax: 1 }).length === 1;
    } catch {
      return false;
    }
  });
}

function findMended(raw: Uint8Array, calls: readonly KnownCall[]): Uint8Array | undefined {
  const own = keccak256(raw);
  if (calls.some(({ hash }) => isSameBytes(hash, own))) return undefined;
  for (const { hash, data } of calls) {
    const candidate = Buffer.from(raw);
    const last = Math.min(FIELDS_BYTES_MAX, raw.length - data.length);
    for (let at = 1; at <= last; at += 1) {
      candidate.set(toBuffer(raw));
      candidate.set(data, at);
      if (isSameBytes(keccak256(candidate), hash)) return candidate;
    }
  }
  return undefined;
}
