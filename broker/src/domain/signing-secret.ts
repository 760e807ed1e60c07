import { BrokerError } from "@stele/wire";
import { findPrivateKey, privateKeyPrefix } from "../lib/private-key.ts";

/** The secrets that sign the callbacks of a subscription. */
export interface SigningSecrets {
  /** The one that was given last. */
  readonly current: string;
  /** The one before it: until that time, in milliseconds since the epoch, it signs as well. */
  readonly older?: { readonly secret: string; readonly until: number } | undefined;
}

/** A text with this prefix holds both secrets of a rotation; no secret that is given has it. */
const rotationPrefix = "whrot_";
/** Refuses a secret whose prefix says that it is what it is not. @throws BrokerError 200001. */
export function checkSecretPrefix(secret: string): void {
  if (secret.startsWith(rotationPrefix)) {
    throw new BrokerError("parameterInvalid", { details: `"secret" must not begin with ${rotationPrefix}` });
  }
  if (secret.startsWith(privateKeyPrefix) && findPrivateKey(secret) === undefined) {
    const details = `"secret" is not Base64 of an Ed25519 key of 32 or 64 bytes after ${privateKeyPrefix}`;
    throw new BrokerError("parameterInvalid", { details });
  }
}

/** The secrets in the text that a subscription keeps. */
export function readSecrets(text: string): SigningSecrets {
  if (!text.startsWith(rotationPrefix)) return { current: text };
  // Only rotateSecret writes this prefix.
  return JSON.parse(text.slice(rotationPrefix.length)) as SigningSecrets;
}

/** The secrets that sign at a time, the current one first. */
export function validSecrets(text: string, now: number): readonly string[] {
  const { current, older } = readSecrets(text);
  return older !== undefined && now < older.until ? [current, older.secret] : [current];
}

/** The text to keep for `next`: the secret that was current before signs as well until that time. */
export function rotateSecret(text: string, next: string, { until }: { readonly until: number }): string {
  const { current } = readSecrets(text);
  if (current === next) return text;
  const secrets: SigningSecrets = { current: next, older: { secret: current, until } };
  return `${rotationPrefix}${JSON.stringify(secrets)}`;
}
