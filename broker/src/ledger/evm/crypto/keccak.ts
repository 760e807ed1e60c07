import { keccak_256 } from "@noble/hashes/sha3.js";
import type createKeccak from "keccak";
import { loadAddon } from "./load-addon.ts";

/** A Keccak-256. */
export interface Keccak {
  readonly implementation: "native" | "noble";
  readonly hash: (bytes: Uint8Array) => Buffer;
}

/** The sponge inside the addon's stream wrapper. Used directly it takes 1.5 µs a hash, through the wrapper 3.3 µs. */
interface Sponge {
  initialize(rate: number, capacity: number): void;
  absorb(bytes: Uint8Array): void;
  absorbLastFewBits(bits: number): void;
  squeeze(length: number): Buffer;
}

type Addon = typeof createKeccak;

const rateBits = 1088;
const capacityBits = 512;
const hashBytes = 32;

/** XKCP's; undefined where its addon cannot be loaded. */
export function loadNativeKeccak(): Keccak | undefined {
  const addon = loadAddon("keccak/bindings.js") as Addon | undefined; // The wrapper keeps its sponge in this field.
  if (addon === undefined) return undefined;
  const sponge = (addon("keccak256") as unknown as { readonly _state: Sponge })._state;
  return {
    implementation: "native",
    hash: (bytes) => {
      sponge.initialize(rateBits, capacityBits);
      sponge.absorb(bytes);
      sponge.absorbLastFewBits(1);
      return sponge.squeeze(hashBytes);
    },
  };
}

/** `@noble/hashes`, in JavaScript. */
export const nobleKeccak: Keccak = {
  implementation: "noble",
  hash: (bytes) => {
    const { buffer, byteOffset, byteLength } = keccak_256(bytes);
    return Buffer.from(buffer, byteOffset, byteLength);
  },
};

/** What hashes in this process. */
export const keccak: Keccak = loadNativeKeccak() ?? nobleKeccak;
