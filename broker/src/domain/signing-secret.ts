import { BrokerError } from "@stele/wire";
import { isBase64 } from "../lib/base64.ts";
import { isPrivateKey, privateKeyPrefix } from "../lib/private-key.ts";

/** The secrets that sign the callbacks of a subscription. */
export interface SigningSecrets {
  /** The newest secret. */
  readonly current: string;
  /** The previous secret, which also signs until `until`, in milliseconds since the epoch. */
  readonly older?: { readonly secret: string; readonly until: number } | undefined;
}

/** Fewest bytes of a symmetric secret (Standard Webhooks 1.0, "Signature scheme"). */
export const secretBytesMin = 24;

/** Maximum number of bytes of a symmetric secret (Standard Webhooks 1.0, "Signature scheme"). */
export const secretBytesMax = 64;

/** A caller gives this text instead of a secret to have the broker make one. No secret has this form. */
export const secretToMake = "generate";

/** Bytes of a secret that the broker makes: as many as HMAC-SHA256 returns. */
export const madeSecretBytes = 32;

/** A text with this prefix holds both secrets of a rotation; {@link checkSecret} refuses a secret that begins with it. */
const rotationPrefix = "whrot_";
const symmetricPrefix = "whsec_";
/** Maximum number of characters of a secret: a prefix, and the Base64 of 64 bytes. */
const secretCharactersMax = 94;

const forms =
  `"secret" is neither ${symmetricPrefix} with the Base64 of ${secretBytesMin} to ${secretBytesMax} bytes nor ${privateKeyPrefix} with that of an Ed25519 private key, alone or with its own public key. ` +
  `Make one: echo "${symmetricPrefix}$(openssl rand -base64 ${madeSecretBytes})"`;

/** Every second secret has a "+", which form data and query strings decode to a space. */
const lostPlus =
  '"secret" has a space where its Base64 must have "+": percent-encode it, such as by curl --data-urlencode';

/**
 * Refuses a secret in a form that libraries of Standard Webhooks do not accept. Subscriptions keep older secrets of other forms. The message
 * never contains the secret. @throws BrokerError 200001.
 */
export function checkSecret(secret: string): void {
  if (hasForm(secret)) return;
  const hasLostPlus = secret.length <= secretCharactersMax && hasForm(secret.replaceAll(" ", "+"));
  throw new BrokerError("parameterInvalid", { details: hasLostPlus ? lostPlus : forms });
}

/** Formats random bytes as a symmetric secret. */
export function toSecret(bytes: Uint8Array): string {
  return symmetricPrefix + Buffer.from(bytes).toString("base64");
}

/** Compares the length first: searching a megabyte would block the event loop. */
function hasForm(secret: string): boolean {
  if (secret.length > secretCharactersMax) return false;
  return isSymmetric(secret) || isPrivateKey(secret);
}

function isSymmetric(secret: string): boolean {
  if (!secret.startsWith(symmetricPrefix)) return false;
  const encoded = secret.slice(symmetricPrefix.length);
  if (!isBase64(encoded)) return false;
  const bytes = Buffer.from(encoded, "base64").length;
  return bytes >= secretBytesMin && bytes <= secretBytesMax;
}

/** The secrets in the text that a subscription keeps. */
export function readSecrets(text: string): SigningSecrets {
  if (!text.startsWith(rotationPrefix)) return { current: text };
  // Only formatRotation writes this prefix.
  return JSON.parse(text.slice(rotationPrefix.length)) as SigningSecrets;
}

/** The secrets that sign at `now`, in milliseconds since the epoch, the current one first. */
export function validSecrets(text: string, now: number): readonly string[] {
  const { current, older } = readSecrets(text);
  return older !== undefined && now < older.until ? [current, older.secret] : [current];
}

/** The text to store when a rotation is to end at `until`. Unchanged if none is in progress: a secret that has ended must not sign again. */
export function moveRotationEnd(
  text: string,
  { now, until }: { readonly now: number; readonly until: number },
): string {
  const { older, ...rest } = readSecrets(text);
  if (older === undefined || now >= older.until) return text;
  return formatRotation({ ...rest, older: { ...older, until } });
}

/** The text to store when `next` becomes the current secret: the previous one signs too until `until`. Unchanged if `next` is current already. */
export function rotateSecret(text: string, next: string, { until }: { readonly until: number }): string {
  const { current } = readSecrets(text);
  if (current === next) return text;
  return formatRotation({ current: next, older: { secret: current, until } });
}

function formatRotation(secrets: SigningSecrets): string {
  return `${rotationPrefix}${JSON.stringify(secrets)}`;
}
