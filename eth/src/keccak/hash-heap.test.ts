import { keccak_256 } from "@noble/hashes/sha3.js";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { createHashHeap, hashBytes } from "./hash-heap.ts";
import { rateBytes } from "./keccak-module.ts";

const heaps = [
  ["WebAssembly", createHashHeap("wasm")],
  ["JavaScript", createHashHeap("script")],
] as const;

// Inputs that end near the end of a lane (8 bytes) or a block (136 bytes): there the padding differs.
const edgeInputs = [0, 1, 7, 8, 9, 134, 135, 136, 137, 271, 272, 273].map((length) =>
  new Uint8Array(length).fill(length),
);

test.each(heaps)("hash writes the same digest as @noble/hashes and leaves the input unchanged, in %s", (_, heap) => {
  const inputs = fc.oneof(fc.constantFrom(...edgeInputs), fc.uint8Array({ maxLength: 3 * rateBytes, size: "max" }));
  fc.assert(
    fc.property(inputs, fc.nat(20), (data, offset) => {
      const at = heap.start + offset;
      const room = heap.reserve(offset + data.length + hashBytes);
      room.set(data, at);
      heap.hash(at, data.length, at + data.length);
      expect(room.slice(at, at + data.length)).toEqual(data);
      expect(room.slice(at + data.length, at + data.length + hashBytes)).toEqual(keccak_256(data));
    }),
    { numRuns: 500 },
  );
});

test.each(heaps)("hash overwrites the input if input and output begin at the same offset, in %s", (_, heap) => {
  const data = new Uint8Array(64).map((_, index) => index);
  const bytes = heap.reserve(data.length);
  bytes.set(data, heap.start);
  heap.hash(heap.start, data.length, heap.start);
  expect(bytes.slice(heap.start, heap.start + hashBytes)).toEqual(keccak_256(data));
});

test.each(heaps)("reserve keeps the bytes of the heap when the heap grows, in %s", (_, heap) => {
  heap.reserve(3)[heap.start + 2] = 77;
  const grown = heap.reserve(1_000_000);
  expect(grown[heap.start + 2]).toBe(77);
  expect(grown.length).toBeGreaterThanOrEqual(heap.start + 1_000_000);
});
