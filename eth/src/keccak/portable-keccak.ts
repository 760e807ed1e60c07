import { hashBytes, hashHeap } from "./hash-heap.ts";

/** A keccak-256 implementation: returns 32 bytes; neither keeps nor changes its input. */
export type Keccak256 = (bytes: Uint8Array) => Uint8Array;

/** Keccak-256 without native code: in WebAssembly, or in JavaScript. */
export const portableKeccak256: Keccak256 = (bytes) => {
  const heap = hashHeap.reserve(Math.max(bytes.length, hashBytes));
  const { start } = hashHeap;
  heap.set(bytes, start);
  hashHeap.hash(start, bytes.length, start);
  return heap.slice(start, start + hashBytes);
};
