import { keccak_256 } from "@noble/hashes/sha3.js";

/** A keccak-256 implementation: 32 bytes for any bytes, which it neither keeps nor changes. */
export type Keccak256 = (bytes: Uint8Array) => Uint8Array;

/** Keccak-256 in JavaScript, for where no native one is at hand. */
export const portableKeccak256: Keccak256 = keccak_256;
