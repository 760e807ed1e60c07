import { secp256k1 as noble } from "@noble/curves/secp256k1.js";
import type secp256k1 from "secp256k1";
import { loadAddon } from "../load-addon.ts";

/** An ECDSA signature by RFC 6979, with the lower `s`. */
export interface CurveSignature {
  /** 32 bytes of `r`, then 32 bytes of `s`. */
  readonly signature: Uint8Array;
  /** Recovery identifier: parity of the `y` of the point whose `x` is `r`. */
  readonly recid: number;
}

/** The operations of secp256k1 that Ethereum needs. Every implementation gives the same bytes. */
export interface Curve {
  readonly implementation: "native" | "noble";
  isPrivateKey(key: Uint8Array): boolean;
  /** The public key as 64 bytes, without the prefix byte 0x04. */
  toPublicKey(privateKey: Uint8Array): Uint8Array;
  sign(hash: Uint8Array, privateKey: Uint8Array): CurveSignature;
  /** The 64 bytes of the public key that signed the hash. Throws if no such key exists. */
  recover(hash: Uint8Array, signed: CurveSignature): Uint8Array;
}

type Addon = typeof secp256k1;

/** libsecp256k1; undefined if its addon cannot be loaded. */
export function loadNativeCurve(): Curve | undefined {
  const addon = loadAddon() as Addon | undefined; // The binding has the interface of the package's main file.
  return (
    addon && {
      implementation: "native",
      isPrivateKey: (key) => key.length === 32 && addon.privateKeyVerify(key),
      toPublicKey: (privateKey) => addon.publicKeyCreate(privateKey, false).subarray(1),
      sign: (hash, privateKey) => addon.ecdsaSign(hash, privateKey),
      recover: (hash, { signature, recid }) => addon.ecdsaRecover(signature, recid, hash, false).subarray(1),
    }
  );
}

/** `@noble/curves`, in JavaScript: constant-time as far as JavaScript can be, and audited. */
export const nobleCurve: Curve = {
  implementation: "noble",
  isPrivateKey: (key) => noble.utils.isValidSecretKey(key),
  toPublicKey: (privateKey) => noble.getPublicKey(privateKey, false).subarray(1),
  sign: (hash, privateKey) => {
    const bytes = noble.sign(hash, privateKey, { prehash: false, lowS: true, format: "recovered" });
    return { signature: bytes.subarray(1), recid: bytes[0] ?? 0 };
  },
  recover: (hash, { signature, recid }) =>
    noble.Signature.fromBytes(signature, "compact")
      .addRecoveryBit(recid)
      .recoverPublicKey(hash)
      .toBytes(false)
      .subarray(1),
};

/** The implementation that this process uses. */
export const curve: Curve = loadNativeCurve() ?? nobleCurve;
