import { hashBytes, hashHeap } from "./hash-heap.ts";

/** A keccak-256 implementation: returns 32 bytes; neither keeps nor changes its input. */
export type Keccak256 = (bytes: Uint8Array) => Uint8Array;

/** Keccak-256 without native code: in WebAssembly, or in JavaScript. */
export const portableKeccak256: Keccak256 = (bytes) => {
  const digest = new Uint8Array(hashBytes);
  keccakInto(digest, 0, bytes);
  return digest;
};

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
