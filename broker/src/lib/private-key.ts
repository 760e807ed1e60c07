import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { isBase64 } from "./base64.ts";

/** Prefix of an asymmetric key of Standard Webhooks 1.0: Base64 of the 32 bytes of an Ed25519 private key, and optionally of its public key. */
export const privateKeyPrefix = "whsk_";
const privateKeyBytes: readonly number[] = [32, 64];

/** Bytes before the 32 bytes of an Ed25519 private key in PKCS #8 (RFC 8410, section 7). */
const keyHead = Buffer.from("302e020100300506032b657004220420", "hex");

/** The first 32 bytes of an asymmetric key; undefined for any other secret. */
export function findPrivateKey(secret: string): Buffer | undefined {
  return decode(secret)?.subarray(0, 32);
}

/** Whether a secret is an asymmetric key. If it contains a public key, that must belong to the private key: another one verifies no signature. */
export function isPrivateKey(secret: string): boolean {
  const bytes = decode(secret);
  return bytes !== undefined && (bytes.length === 32 || bytes.subarray(32).equals(publicKeyOf(bytes.subarray(0, 32))));
}

/** The key that signs, from the 32 bytes of an Ed25519 private key. */
export function toPrivateKey(seed: Buffer): KeyObject {
  return createPrivateKey({ key: Buffer.concat([keyHead, seed]), format: "der", type: "pkcs8" });
}

function publicKeyOf(seed: Buffer): Buffer {
  return createPublicKey(toPrivateKey(seed)).export({ format: "der", type: "spki" }).subarray(-32);
}

function decode(secret: string): Buffer | undefined {
  if (!secret.startsWith(privateKeyPrefix)) return undefined;
  const encoded = secret.slice(privateKeyPrefix.length);
  const bytes = isBase64(encoded) ? Buffer.from(encoded, "base64") : Buffer.alloc(0);
  return privateKeyBytes.includes(bytes.length) ? bytes : undefined;
}
