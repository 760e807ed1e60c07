import { keccak_256 } from "@noble/hashes/sha3.js";
import type createKeccak from "keccak";
import { toBuffer } from "../bytes.ts";
import { loadAddon } from "../load-addon.ts";
import { hashBytes, hashHeap } from "./hash-heap.ts";

/** A Keccak-256 implementation. */
export interface Keccak {
  readonly implementation: "native" | "noble";
  /** Hashes the concatenated parts. */
  readonly hash: (...parts: readonly Uint8Array[]) => Buffer;
}

/** The sponge inside the addon's stream. Used directly it takes 1.5 µs a hash, through the stream 3.3 µs. */
interface Sponge {
  initialize(rate: number, capacity: number): void;
  absorb(bytes: Uint8Array): void;
  absorbLastFewBits(bits: number): void;
  squeeze(length: number): Buffer;
}

type Addon = typeof createKeccak;

const rateBits = 1_088;
const capacityBits = 512;
/**
 * Longest input, in bytes, that is hashed in WebAssembly. That is faster for inputs up to some hundred kilobytes, since the addon needs four calls and a new
 * buffer, over a microsecond, for each hash. The limit is lower, because the WebAssembly heap keeps that much memory.
 */
const shortBytesMax = 16_384;

/** The native addon; undefined if it cannot be loaded. */
export function loadNativeKeccak(): Keccak | undefined {
  const addon = loadAddon("keccak/bindings.js") as Addon | undefined; // The binding has the interface of the package's main file.
  if (addon === undefined) return undefined;
  const sponge = (addon("keccak256") as unknown as { readonly _state: Sponge })._state; // The stream's private sponge.
  return {
    implementation: "native",
    hash: (...parts) => {
      sponge.initialize(rateBits, capacityBits);
      for (const part of parts) sponge.absorb(toBuffer(part));
      sponge.absorbLastFewBits(1);
      return sponge.squeeze(hashBytes);
    },
  };
}

/** `@noble/hashes`, in JavaScript. */
export const nobleKeccak: Keccak = {
  implementation: "noble",
  hash: (...parts) => {
    const hash = keccak_256.create();
    for (const part of parts) hash.update(part);
    return toBuffer(hash.digest());
  },
};

/** The implementation that this process uses. */
export const keccak: Keccak = loadNativeKeccak() ?? nobleKeccak;

const hasFastHeap = hashHeap.kind === "wasm";

/** Keccak-256 of the concatenated parts. Hashes a single short part in WebAssembly, and other input with the native addon if it loads. */
export function keccak256(first: Uint8Array, ...others: readonly Uint8Array[]): Buffer {
  if (!hasFastHeap || others.length > 0 || first.length > shortBytesMax) return keccak.hash(first, ...others);
  const digest = Buffer.allocUnsafeSlow(hashBytes); // A slice of Buffer's pool would keep 8 KiB alive with each hash.
  hashShort(first, digest, 0);
  return digest;
}

/** Writes the Keccak-256 of `bytes` to the 32 bytes of `target` at `at`. This saves a new buffer, which costs as much time as hashing 100 bytes. */
export function keccakInto(target: Uint8Array, at: number, bytes: Uint8Array): void {
  if (hasFastHeap && bytes.length <= shortBytesMax) hashShort(bytes, target, at);
  else target.set(keccak.hash(bytes), at);
}

function hashShort(bytes: Uint8Array, target: Uint8Array, at: number): void {
  const heap = hashHeap.reserve(shortBytesMax);
  const { start } = hashHeap;
  heap.set(bytes, start);
  hashHeap.hash(start, bytes.length, start);
  for (let index = 0; index < hashBytes; index += 1) target[at + index] = heap[start + index] ?? 0;
}
