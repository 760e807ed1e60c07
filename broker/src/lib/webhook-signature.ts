import { createHmac, sign } from "node:crypto";
import { isBase64 } from "./base64.ts";
import { findPrivateKey, toPrivateKey } from "./private-key.ts";

const secretPrefix = "whsec_";

export interface SignedMessage {
  readonly id: string;
  readonly timestampSeconds: number;
  readonly body: Uint8Array;
}

/**
 * Signs `id.timestamp.body` by Standard Webhooks 1.0. A secret `whsk_<Base64>` gives `v1a,` and the Base64 of an Ed25519 signature; any other secret gives
 * `v1,` and the Base64 of an HMAC-SHA256. The HMAC's key is the decoded bytes of a secret `whsec_<Base64>`, else the UTF-8 bytes of the secret.
 */
export function signMessage(secret: string, { id, timestampSeconds, body }: SignedMessage): string {
  const head = `${id}.${timestampSeconds}.`;
  const seed = findPrivateKey(secret);
  if (seed !== undefined) {
    return `v1a,${sign(null, Buffer.concat([Buffer.from(head), body]), toPrivateKey(seed)).toString("base64")}`;
  }
  return `v1,${createHmac("sha256", toKey(secret)).update(head).update(body).digest("base64")}`;
}

function toKey(secret: string): Buffer {
  const encoded = secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : "";
  return encoded !== "" && isBase64(encoded) ? Buffer.from(encoded, "base64") : Buffer.from(secret, "utf8");
}
