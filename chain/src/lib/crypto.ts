import { padStart } from "./bytes.ts";
import { loadNativeKeccak, nobleKeccak } from "./keccak.ts";
import { loadNativeRecover, nobleRecover } from "./recover.ts";

/** The hash of the parts one after another. */
export const keccak256 = loadNativeKeccak() ?? nobleKeccak;

const recover = loadNativeRecover() ?? nobleRecover;

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
  return recover(compact, signature.yParity, digest);
}

export function toAddressBytes(publicKey: Uint8Array): Uint8Array {
  return keccak256(publicKey).subarray(12);
}
