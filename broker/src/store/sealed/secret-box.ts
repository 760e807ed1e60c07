import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { SubscriptionId } from "../../domain/subscription.ts";
import type { SecretKey, SecretKeys } from "./secret-keys.ts";

/** Result of opening a sealed secret. The reason contains no part of the secret. */
export type Opened =
  | { readonly status: "open"; readonly secret: string }
  | { readonly status: "shut"; readonly reason: string };

const cipher = "aes-256-gcm";
/** Length of the nonce, which is random for each seal: one key may seal 2^32 times (NIST SP 800-38D, section 8.3). */
const nonceBytes = 12;
const tagBytes = 16;
const form = /^v1:([0-9a-f]{16}):([A-Za-z0-9_-]+)$/;

/**
 * Seals secrets for the store: `v1:<key id>:<Base64url of nonce, AES-256-GCM ciphertext and tag>`. The identifier of the subscription is the
 * additional data, so that a sealed secret opens only for its own subscription.
 */
export class SecretBox {
  readonly #keys: SecretKeys;

  constructor(keys: SecretKeys) {
    this.#keys = keys;
  }

  /** @throws BrokerError if the broker has no key. */
  seal(id: SubscriptionId, secret: string): string {
    const key = this.#keys.newest();
    const nonce = randomBytes(nonceBytes);
    const sealing = createCipheriv(cipher, key.bytes, nonce, { authTagLength: tagBytes }).setAAD(dataOf(id, key));
    const bytes = Buffer.concat([nonce, sealing.update(secret, "utf8"), sealing.final(), sealing.getAuthTag()]);
    return `v1:${key.id}:${bytes.toString("base64url")}`;
  }

  /** Whether the broker has older keys, with which some secrets may be sealed. */
  get hasOlderKeys(): boolean {
    return this.#keys.count > 1;
  }

  /** Whether one of the broker's older keys sealed the secret. */
  isOfOlderKey(sealed: string): boolean {
    const [, keyId] = form.exec(sealed) ?? [];
    return keyId !== undefined && this.#keys.find(keyId) !== undefined && this.#keys.newest().id !== keyId;
  }

  /** Opens a sealed secret. Never throws, whatever the stored text is. */
  open(id: SubscriptionId, sealed: string): Opened {
    const [, keyId, text] = form.exec(sealed) ?? [];
    if (keyId === undefined || text === undefined) return { status: "shut", reason: "it is not sealed" };
    const key = this.#keys.find(keyId);
    if (key === undefined) return { status: "shut", reason: `its key ${keyId} is not in the key file` };
    const secret = decipher(Buffer.from(text, "base64url"), { key, id });
    if (secret === undefined) return { status: "shut", reason: "it was changed, or is another subscription's" };
    return { status: "open", secret };
  }
}

/** The secret; undefined if the bytes fail authentication. */
function decipher(
  bytes: Buffer,
  { key, id }: { readonly key: SecretKey; readonly id: SubscriptionId },
): string | undefined {
  if (bytes.length < nonceBytes + tagBytes) return undefined;
  const nonce = bytes.subarray(0, nonceBytes);
  const opening = createDecipheriv(cipher, key.bytes, nonce, { authTagLength: tagBytes }).setAAD(dataOf(id, key));
  opening.setAuthTag(bytes.subarray(-tagBytes));
  try {
    const plain = opening.update(bytes.subarray(nonceBytes, -tagBytes));
    return Buffer.concat([plain, opening.final()]).toString("utf8");
  } catch {
    return undefined;
  }
}

function dataOf(id: SubscriptionId, key: SecretKey): Buffer {
  return Buffer.from(`stele subscription secret v1 ${key.id} ${id}`, "utf8");
}
