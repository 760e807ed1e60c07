import { toBuffer } from "../lib/bytes.ts";
import { rememberedKeccak } from "../lib/remembered-keccak.ts";
import type { Log } from "./log.ts";

export const BLOOM_BYTES = 256;
const BITS_PER_ENTRY = 3;
const BIT_MASK = 0x7ff;

/** The logs bloom of the Yellow Paper, section 4.3.1. */
export function createBloom(logs: readonly Log[]): Uint8Array {
  const bloom = new Uint8Array(BLOOM_BYTES);
  const seen = new Set<string>();
  for (const log of logs) {
    addToBloom(bloom, log.address, seen);
    for (const topic of log.topics) addToBloom(bloom, topic, seen);
  }
  return bloom;
}

/** The bloom of all logs that the blooms are of. */
export function mergeBlooms(blooms: readonly Uint8Array[]): Uint8Array {
  const [first] = blooms;
  if (first !== undefined && blooms.length === 1) return first;
  const merged = new Uint8Array(BLOOM_BYTES);
  for (const bloom of blooms) for (const [at, bits] of bloom.entries()) merged[at] = (merged[at] ?? 0) | bits;
  return merged;
}

function addToBloom(bloom: Uint8Array, entry: Uint8Array, seen: Set<string>): void {
  const key = toBuffer(entry).toString("latin1");
  if (seen.has(key)) return;
  seen.add(key);
  const hash = rememberedKeccak(entry);
  for (let pair = 0; pair < BITS_PER_ENTRY; pair += 1) {
    const bit = (((hash[pair * 2] ?? 0) << 8) | (hash[pair * 2 + 1] ?? 0)) & BIT_MASK;
    const at = BLOOM_BYTES - 1 - (bit >> 3);
    bloom[at] = (bloom[at] ?? 0) | (1 << (bit & 7));
  }
}
