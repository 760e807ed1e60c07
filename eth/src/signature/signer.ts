import { toHex, trimZeros } from "../bytes.ts";
import type { Hex } from "../hex-text.ts";
import { curve } from "./curve.ts";
import { type Signature, toAddressBytes } from "./signature.ts";

const scalarBytes = 32;

/** Signs hashes with one secp256k1 key. */
export class Signer {
  readonly address: Hex;
  readonly #privateKey: Uint8Array;

  /** @throws TypeError if `privateKey` is not a secp256k1 private key. */
  constructor(privateKey: Uint8Array) {
    if (!curve.isPrivateKey(privateKey)) {
      throw new TypeError("the signer's key is not a secp256k1 private key of 32 bytes");
    }
    this.#privateKey = privateKey;
    this.address = toHex(toAddressBytes(curve.toPublicKey(privateKey)));
  }

  sign(hash: Uint8Array): Signature {
    const { signature, recid } = curve.sign(hash, this.#privateKey);
    return {
      yParity: recid,
      r: trimZeros(signature.subarray(0, scalarBytes)),
      s: trimZeros(signature.subarray(scalarBytes)),
    };
  }
}
