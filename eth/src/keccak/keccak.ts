import { hashBytes } from "./hash-heap.ts";
import { keccakInto } from "./portable-keccak.ts";

/** Keccak-256 of the concatenated parts. */
export function keccak256(...parts: readonly Uint8Array[]): Buffer {
  const digest = Buffer.allocUnsafeSlow(hashBytes); // A slice of Buffer's pool would keep 8 KiB alive with each hash.
  keccakInto(digest, 0, ...parts);
  return digest;
}
