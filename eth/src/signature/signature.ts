import { padStart } from "../bytes.ts";
import { keccak256 } from "../keccak/keccak.ts";
import { curve } from "./curve.ts";

/** The signature of a transaction; `r` and `s` without leading zeros. */
export interface Signature {
  readonly yParity: number;
  readonly r: Uint8Array;
  readonly s: Uint8Array;
}

const scalarBytes = 32;
const addressBytes = 20;
const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** Whether `s` is in the lower half of the curve's order, as EIP-2 asks of a transaction. */
export function isLowS(s: bigint): boolean {
  return s > 0n && s <= order / 2n;
}

/** The 64 bytes of the public key that signed `hash`. Throws if no such key exists. */
export function recoverPublicKey(hash: Uint8Array, { r, s, yParity }: Signature): Uint8Array {
  const signature = new Uint8Array(2 * scalarBytes);
  signature.set(padStart(r, scalarBytes), 0);
  signature.set(padStart(s, scalarBytes), scalarBytes);
  return curve.recover(hash, { signature, recid: yParity });
}

/** The address of the account with this public key of 64 bytes. */
export function toAddressBytes(publicKey: Uint8Array): Uint8Array {
  return keccak256(publicKey).subarray(-addressBytes);
}
