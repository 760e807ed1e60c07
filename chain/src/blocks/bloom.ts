import { bloomBits, bloomBytes, setBloomBit, toBuffer } from "@stele/eth/node";
import { rememberedKeccak } from "../lib/remembered-keccak.ts";
import type { Log } from "./log.ts";

/** The bloom of these logs (Yellow Paper, section 4.3.1). */
export function createBloom(logs: readonly Log[]): Uint8Array {
  const bloom = new Uint8Array(bloomBytes);
  const seen = new Set<string>();
  let previous: Log | undefined;
  for (const log of logs) {
    // Logs of one transaction share objects: comparing references saves a look-up.
    if (log.address !== previous?.address) addToBloom(bloom, log.address, seen);
    let index = 0;
    for (const topic of log.topics) {
      if (topic !== previous?.topics[index]) addToBloom(bloom, topic, seen);
      index += 1;
    }
    previous = log;
  }
  return bloom;
}

/** The bitwise OR of blooms, which is the bloom of all their logs. */
export function mergeBlooms(blooms: readonly Uint8Array[]): Uint8Array {
  const [first] = blooms;
  if (first !== undefined && blooms.length === 1) return first;
  const merged = new Uint8Array(bloomBytes);
  for (const bloom of blooms) for (const [at, bits] of bloom.entries()) merged[at] = (merged[at] ?? 0) | bits;
  return merged;
}

function addToBloom(bloom: Uint8Array, entry: Uint8Array, seen: Set<string>): void {
  const key = toBuffer(entry).toString("latin1");
  if (seen.has(key)) return;
  seen.add(key);
  for (const bit of bloomBits(rememberedKeccak(entry))) setBloomBit(bloom, bit);
}
