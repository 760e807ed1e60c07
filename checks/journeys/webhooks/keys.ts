import { generateKeyPairSync, randomBytes } from "node:crypto";

/** The secret of a subscription, and the key with which its receiver verifies. */
export interface Keys {
  readonly secret: string;
  readonly key: string;
}

export function createSymmetric(): Keys {
  const secret = `whsec_${randomBytes(32).toString("base64")}`;
  return { secret, key: secret };
}

/** An Ed25519 key pair. Each key is the last 32 bytes of its encoding (RFC 8410, sections 4 and 7). */
export function createAsymmetric(): Keys {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const seed = privateKey.export({ format: "der", type: "pkcs8" }).subarray(-32);
  const bytes = publicKey.export({ format: "der", type: "spki" }).subarray(-32);
  return { secret: `whsk_${seed.toString("base64")}`, key: `whpk_${bytes.toString("base64")}` };
}
