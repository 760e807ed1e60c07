import createKeccak from "keccak";
import secp256k1 from "secp256k1";
import { padStart, toBuffer } from "./bytes.ts";

/** The sponge inside the addon's stream, which costs more to make than a short hash to compute. */
interface Sponge {
  initialize(rate: number, capacity: number): void;
  absorb(bytes: Uint8Array): void;
  absorbLastFewBits(bits: number): void;
  squeeze(length: number): Buffer;
}

const RATE_BITS = 1_088;
const CAPACITY_BITS = 512;
const HASH_BYTES = 32;

// The stream keeps its sponge in this field in both builds, the addon and the one in JavaScript.
const sponge = (createKeccak("keccak256") as unknown as { readonly _state: Sponge })._state;

/** The hash of the parts one after another. */
export function keccak256(...parts: readonly Uint8Array[]): Uint8Array {
  sponge.initialize(RATE_BITS, CAPACITY_BITS);
  for (const part of parts) sponge.absorb(toBuffer(part));
  sponge.absorbLastFewBits(1);
  return sponge.squeeze(HASH_BYTES);
}

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** Whether `s` is in the lower half of the curve's order, as EIP-2 asks of a transaction. */
export function isLowS(s: bigint): boolean {
  return s > 0n && s <= ORDER / 2n;
}

export interface Signature {
  readonly r: Uint8Array;
  readonly s: Uint8Array;
  readonly yParity: number;
}

/** The 64 bytes of the public key that signed `digest`. Throws when there is none. */
export function recoverPublicKey(digest: Uint8Array, signature: Signature): Uint8Array {
  const compact = new Uint8Array(64);
  compact.set(padStart(signature.r, 32), 0);
  compact.set(padStart(signature.s, 32), 32);
  return secp256k1.ecdsaRecover(compact, signature.yParity, digest, false).subarray(1);
}

export function toAddressBytes(publicKey: Uint8Array): Uint8Array {
  return keccak256(publicKey).subarray(12);
}
