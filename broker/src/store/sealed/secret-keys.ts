import { createHash } from "node:crypto";

/** A key that seals secrets, and the identifier that each sealed text carries. */
export interface SecretKey {
  /** Identifier of the key, which does not reveal the key. */
  readonly id: string;
  readonly bytes: Uint8Array;
}

/** The keys of a broker. */
export interface SecretKeys {
  /** The key that seals new secrets. @throws BrokerError if there is none. */
  newest(): SecretKey;
  readonly count: number;
  /** The key with this identifier; undefined if the broker lacks it. */
  find(id: string): SecretKey | undefined;
}

export const keyBytes = 32;
/** Maximum number of keys in a file: the newest, and older keys that sealed existing secrets. */
export const secretKeysMax = 16;

/** A key that a broker has used before cannot be replaced: without it, the subscriptions with secrets stay locked. */
const remedy = `restore the file from a backup, or for a new file make a key by: openssl rand -hex ${keyBytes}`;
const idCharacters = 16;
const hexKey = /^[0-9a-f]{64}$/i;
const base64Key = /^[A-Za-z0-9+/]{43}=$/;

export function toSecretKey(bytes: Uint8Array): SecretKey {
  const digest = createHash("sha256").update("stele secret key").update(bytes).digest("hex");
  return { id: digest.slice(0, idCharacters), bytes };
}

/**
 * Parses a key file: one key a line, newest first, 32 bytes in hexadecimal or Base64. Empty lines and lines that begin with `#` are ignored.
 * @throws Error that names `source`, and the line of a malformed key, and shows no key.
 */
export function parseSecretKeys(text: string, source: string): readonly SecretKey[] {
  const lines = text.split("\n").map((line, index) => ({ number: index + 1, text: line.trim() }));
  const keys = lines
    .filter((line) => line.text !== "" && !line.text.startsWith("#"))
    .map((line) => toSecretKey(parseKey(line.text, `${source}, line ${line.number}`)));
  if (keys.length === 0) throw new Error(`${source} holds no key; ${remedy}`);
  if (keys.length > secretKeysMax)
    throw new Error(`${source} holds ${keys.length} keys; ${secretKeysMax} is the limit`);
  return keys;
}

function parseKey(text: string, place: string): Uint8Array {
  if (hexKey.test(text)) return Buffer.from(text, "hex");
  if (base64Key.test(text)) return Buffer.from(text, "base64");
  throw new Error(`${place}: no key of ${keyBytes} bytes in hexadecimal or Base64; ${remedy}`);
}
