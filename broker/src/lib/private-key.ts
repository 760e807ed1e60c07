/** Prefix of an asymmetric key of Standard Webhooks 1.0: Base64 of the 32 bytes of an Ed25519 private key, and optionally of its public key. */
export const privateKeyPrefix = "whsk_";
const privateKeyBytes: readonly number[] = [32, 64];
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** The first 32 bytes of an asymmetric key; undefined for any other secret. */
export function findPrivateKey(secret: string): Buffer | undefined {
  if (!secret.startsWith(privateKeyPrefix)) return undefined;
  const encoded = secret.slice(privateKeyPrefix.length);
  const bytes = base64.test(encoded) ? Buffer.from(encoded, "base64") : Buffer.alloc(0);
  return privateKeyBytes.includes(bytes.length) ? bytes.subarray(0, 32) : undefined;
}
