import { secp256k1 as noble } from "@noble/curves/secp256k1.js";
import type secp256k1 from "secp256k1";
import { loadAddon } from "./load-addon.ts";

/**
 * The 64 bytes of the public key that signed a hash, by `r` and `s` of 32 bytes each and the parity of the point's `y`. Throws if no
 * such key exists.
 */
export type Recover = (compact: Uint8Array, yParity: number, hash: Uint8Array) => Uint8Array;

type Addon = typeof secp256k1;

/** Uses libsecp256k1; undefined if its addon cannot be loaded. */
export function loadNativeRecover(): Recover | undefined {
  const addon = loadAddon("secp256k1/bindings.js") as Addon | undefined; // The main file has the same interface.
  return addon && ((compact, yParity, hash) => addon.ecdsaRecover(compact, yParity, hash, false).subarray(1));
}

/** Uses `@noble/curves`, in JavaScript. */
export const nobleRecover: Recover = (compact, yParity, hash) =>
  noble.Signature.fromBytes(compact, "compact")
    .addRecoveryBit(yParity)
    .recoverPublicKey(hash)
    .toBytes(false)
    .subarray(1);
