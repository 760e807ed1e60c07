import { keccak256, keccakInto, fromLatin1, toLatin1 } from "@stele/eth/node";
import { REMEMBERED_HASHES_MAX } from "../limits.ts";

/** Longest input, in bytes, whose hash is remembered: a key of a map and the slot of the map. */
const INPUT_BYTES_MAX = 64;
const HASH_BYTES = 32;
/** Maximum number of hashes in each of the two generations. */
const GENERATION_HASHES_MAX = REMEMBERED_HASHES_MAX / 2;

/** Hashes by their input as latin1, all in one buffer. A buffer for each hash would take 400 bytes more: 25 MB with 20,000 topics. */
class Generation {
  readonly #indices = new Map<string, number>();
  readonly #bytes = Buffer.allocUnsafeSlow(GENERATION_HASHES_MAX * HASH_BYTES);

  get isFull(): boolean {
    return this.#indices.size >= GENERATION_HASHES_MAX;
  }

  get(key: string): Uint8Array | undefined {
    const index = this.#indices.get(key);
    return index === undefined ? undefined : this.#at(index);
  }

  /** Adds an input and returns the bytes for its hash. */
  add(key: string): Uint8Array {
    const index = this.#indices.size;
    this.#indices.set(key, index);
    return this.#at(index);
  }

  #at(index: number): Uint8Array {
    return this.#bytes.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES);
  }
}

/**
 * The newer generation. When it is full, it replaces the older one, and an empty one takes its place. A hash that is used again moves here; the others are
 * dropped with the older one. Buffers are not reused, so views stay valid.
 */
let young = new Generation();
let old: Generation | undefined;

/**
 * As `keccak256`, but remembers short inputs: a topic's address and slot recur in every block with its events. Do not change the result. To keep it, copy it:
 * it is a view of a megabyte of memory.
 */
export function rememberedKeccak(bytes: Uint8Array): Uint8Array {
  if (bytes.length > INPUT_BYTES_MAX) return keccak256(bytes);
  const key = toLatin1(bytes);
  return young.get(key) ?? moveOrHash(key, bytes);
}

/** As `rememberedKeccak`, for a short input given as latin1. */
export function rememberedKeccakOf(key: string): Uint8Array {
  return young.get(key) ?? moveOrHash(key, undefined);
}

function moveOrHash(key: string, bytes: Uint8Array | undefined): Uint8Array {
  const known = old?.get(key);
  if (young.isFull) [old, young] = [young, new Generation()];
  const hash = young.add(key);
  if (known !== undefined) hash.set(known);
  else keccakInto(hash, 0, bytes ?? fromLatin1(key));
  return hash;
}
