import { keccak256, keccakInto, fromText, toText } from "@stele/eth/node";
import { REMEMBERED_HASHES_MAX } from "../limits.ts";

/** Longest input that is worth remembering: a key of a map and the slot of the map. */
const INPUT_BYTES_MAX = 64;
const HASH_BYTES = 32;
/** Half of them are in each of two generations. */
const GENERATION_HASHES_MAX = REMEMBERED_HASHES_MAX / 2;

/**
 * Hashes, side by side in one piece of memory, by their input as latin1. With a piece of memory of its own each hash took 400 bytes more, which was 25 MB with
 * 20,000 topics.
 */
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

  /** Room for the hash of another input. */
  add(key: string): Uint8Array {
    const index = this.#indices.size;
    this.#indices.set(key, index);
    return this.#at(index);
  }

  #at(index: number): Uint8Array {
    return this.#bytes.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES);
  }
}

/** A full generation replaces the older one; a hash that is used moves on, and the others go. Memory is never written again, so a view stays good. */
let young = new Generation();
let old: Generation | undefined;

/**
 * As `keccak256`, for inputs that come again: each topic's address and slot does in every block that has its events. The caller changes nothing of it, and
 * copies what it keeps: the hash is a view of a megabyte.
 */
export function rememberedKeccak(bytes: Uint8Array): Uint8Array {
  if (bytes.length > INPUT_BYTES_MAX) return keccak256(bytes);
  const key = toText(bytes);
  return young.get(key) ?? moveOrHash(key, bytes);
}

/** The same for short input that is given as latin1. */
export function rememberedKeccakOf(key: string): Uint8Array {
  return young.get(key) ?? moveOrHash(key, undefined);
}

function moveOrHash(key: string, bytes: Uint8Array | undefined): Uint8Array {
  const known = old?.get(key);
  if (young.isFull) [old, young] = [young, new Generation()];
  const hash = young.add(key);
  if (known !== undefined) hash.set(known);
  else keccakInto(hash, 0, bytes ?? fromText(key));
  return hash;
}
