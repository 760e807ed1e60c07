import createKeccak from "keccak";
import secp256k1 from "secp256k1";
import { padStart, toBuffer } from "./bytes.ts";

export function keccak256(bytes: Uint8Array): Uint8Array {
  return createKeccak("keccak256").update(toBuffer(bytes)).digest();
}

const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

/** Whether `s` is in the lower half of the curve's order, as EIP-2 asks of a transaction. */
export function isLowS(s: bigint): boolean {
  return s > 0n && s <= HALF_ORDER;
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
