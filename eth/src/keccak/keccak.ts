import { hashBytes, hashHeap } from "./hash-heap.ts";

/** Keccak-256 of the concatenated parts. */
export function keccak256(...parts: readonly Uint8Array[]): Buffer {
  const digest = Buffer.allocUnsafeSlow(hashBytes); // A slice of Buffer's pool would keep 8 KiB alive with each hash.
  keccakInto(digest, 0, ...parts);
  return digest;
}

/** Writes the Keccak-256 of the parts to the 32 bytes of `target` at `at`. This saves a new buffer, which costs as much time as hashing 100 bytes. */
export function keccakInto(target: Uint8Array, at: number, ...parts: readonly Uint8Array[]): void {
  let length = 0;
  for (const part of parts) length += part.length;
  const heap = hashHeap.reserve(Math.max(length, hashBytes));
  const { start } = hashHeap;
  let end = start;
  for (const part of parts) {
    heap.set(part, end);
    end += part.length;
  }
  hashHeap.hash(start, length, start);
  for (let index = 0; index < hashBytes; index += 1) target[at + index] = heap[start + index] ?? 0;
}
