import { keccak_256 } from "@noble/hashes/sha3.js";
import type createKeccak from "keccak";
import { toBuffer } from "./bytes.ts";
import { loadAddon } from "./load-addon.ts";

/** Keccak-256 of the parts one after another. */
export type Keccak = (...parts: readonly Uint8Array[]) => Uint8Array;

/** The sponge inside the addon's stream, which costs more to make than a short hash to compute. */
interface Sponge {
  initialize(rate: number, capacity: number): void;
  absorb(bytes: Uint8Array): void;
  absorbLastFewBits(bits: number): void;
  squeeze(length: number): Buffer;
}

type Addon = typeof createKeccak;

const RATE_BITS = 1_088;
const CAPACITY_BITS = 512;
const HASH_BYTES = 32;

/** By the native addon; undefined where it cannot be loaded. */
export function loadNativeKeccak(): Keccak | undefined {
  const addon = loadAddon("keccak/bindings.js") as Addon | undefined; // The stream keeps its sponge in this field.
  if (addon === undefined) return undefined;
  const sponge = (addon("keccak256") as unknown as { readonly _state: Sponge })._state;
  return (...parts) => {
    sponge.initialize(RATE_BITS, CAPACITY_BITS);
    for (const part of parts) sponge.absorb(toBuffer(part));
    sponge.absorbLastFewBits(1);
    return sponge.squeeze(HASH_BYTES);
  };
}

/** By `@noble/hashes`, in JavaScript. */
export const nobleKeccak: Keccak = (...parts) => {
  const hash = keccak_256.create();
  for (const part of parts) hash.update(part);
  return hash.digest();
};
