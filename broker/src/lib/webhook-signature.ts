import { createHmac } from "node:crypto";

const secretPrefix = "whsec_";
const base64 =
  /^(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$|^[A-Za-z0-9+/]{2}==$|^[A-Za-z0-9+/]{3}=$/;

export interface SignedMessage {
  readonly id: string;
  readonly timestampSeconds: number;
  readonly body: Uint8Array;
}

/**
 * The `webhook-signature` of Standard Webhooks 1.0: `v1,` and the Base64 of HMAC-SHA256 over `id.timestamp.body`. The key of a secret
 * `whsec_<Base64>` is its decoded bytes; the key of any other secret is its UTF-8 bytes.
 */
export function signMessage(secret: string, message: SignedMessage): string {
  const hmac = createHmac("sha256", toKey(secret));
  hmac.update(`${message.id}.${message.timestampSeconds}.`).update(message.body);
  return `v1,${hmac.digest("base64")}`;
}

function toKey(secret: string): Buffer {
  const encoded = secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : "";
  return base64.test(encoded) ? Buffer.from(encoded, "base64") : Buffer.from(secret, "utf8");
}
