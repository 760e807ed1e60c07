import type { Address } from "../../domain/topic.ts";
import { curve } from "./crypto/curve.ts";
import { keccak } from "./crypto/keccak.ts";
import { toHex } from "./hex.ts";

const hashBytes = 32;
const addressBytes = 20;

/** Keccak-256, by the native addon where it can be loaded. */
export const keccak256 = keccak.hash;

/** Which implementation signs and which hashes in this process. */
export const cryptoInUse = { signing: curve.implementation, hashing: keccak.implementation } as const;

/** What a signature of a transaction consists of; `r` and `s` without leading zeros. */
export interface Signature {
  readonly yParity: number;
  readonly r: Uint8Array;
  readonly s: Uint8Array;
}

/** Signs hashes with one secp256k1 key. */
export class Signer {
  readonly address: Address;
  readonly #privateKey: Uint8Array;

  constructor(privateKey: Uint8Array) {
    if (!curve.isPrivateKey(privateKey)) {
      throw new TypeError("the signer's key is not a secp256k1 private key of 32 bytes");
    }
    this.#privateKey = privateKey;
    this.address = toHex(keccak256(curve.toPublicKey(privateKey)).subarray(-addressBytes));
  }

  sign(hash: Uint8Array): Signature {
    const { signature, recid } = curve.sign(hash, this.#privateKey);
    return {
      yParity: recid,
      r: withoutLeadingZeros(signature.subarray(0, hashBytes)),
      s: withoutLeadingZeros(signature.subarray(hashBytes)),
    };
  }
}

function withoutLeadingZeros(bytes: Uint8Array): Uint8Array {
  const start = bytes.findIndex((byte) => byte !== 0);
  return start === -1 ? bytes.subarray(bytes.length) : bytes.subarray(start);
}
