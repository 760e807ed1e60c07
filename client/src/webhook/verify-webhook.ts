import { fromBase64 } from "../lib/base64.ts";
import { readWebhook, type Webhook } from "./read-webhook.ts";
import { WebhookRefused } from "./webhook-refused.ts";

/** Headers of `fetch`, which may be of a package that has a class of its own. */
interface FetchHeaders {
  get(name: string): string | null;
}

/** Headers of `fetch`, or of Node.js, Express and Fastify. */
export type WebhookHeaders = FetchHeaders | Readonly<Record<string, string | readonly string[] | undefined>>;

/** A secret, or the public key `whpk_…` of a secret `whsk_…`. To replace a secret, give the old and the new one: a signature by either is enough. */
export type WebhookSecret = string | readonly string[];

export interface VerifyWebhookOptions {
  readonly secret: WebhookSecret;
  /** How old, or how far in the future, a callback may be, in seconds. 300 if left out. */
  readonly toleranceS?: number | undefined;
  /** Current time in milliseconds since 1970; `Date.now()` if left out. */
  readonly now?: number | undefined;
}

const toleranceDefaultS = 300;
/** Maximum number of signatures of one request to verify: each takes time for the whole body, and anybody may send them. A broker sends at most two. */
const signaturesMax = 16;
const encoder = new TextEncoder();

/**
 * Verifies the signature of a callback (Standard Webhooks 1.0), and reads the callback. `rawBody` must be the bytes as they came, before any parser. `given` is
 * the secret of the subscription, or options with that secret.
 * @throws WebhookRefused; TypeError for a secret that can verify nothing, or a subscription that sends CloudEvents.
 */
export async function verifyWebhook(
  rawBody: string | Uint8Array,
  headers: WebhookHeaders,
  given: WebhookSecret | VerifyWebhookOptions,
): Promise<Webhook> {
  const id = await verifySignature(rawBody, headers, given);
  return readWebhook(typeof rawBody === "string" ? rawBody : new TextDecoder().decode(rawBody), id);
}

/**
 * Verifies the signature alone, for bodies in any form, such as CloudEvents. Returns the `webhook-id`, which is the same for each repeat.
 * @throws WebhookRefused; TypeError for a secret that can verify nothing.
 */
export async function verifySignature(
  rawBody: string | Uint8Array,
  headers: WebhookHeaders,
  given: WebhookSecret | VerifyWebhookOptions,
): Promise<string> {
  const { secret, toleranceS = toleranceDefaultS, now = Date.now() } = isSecret(given) ? { secret: given } : given;
  const [id, timestamp, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => {
    const value = findHeader(headers, name);
    if (value === undefined) throw new WebhookRefused(`header ${name} is missing`);
    return value;
  }) as [string, string, string]; // One for each name.
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookRefused("webhook-timestamp is not a number of seconds");
  if (Math.abs(now / 1000 - Number(timestamp)) > toleranceS) {
    throw new WebhookRefused(`webhook-timestamp is more than ${toleranceS} s off this machine's clock`);
  }
  const body = typeof rawBody === "string" ? encoder.encode(rawBody) : rawBody;
  const signed = joined(encoder.encode(`${id}.${timestamp}.`), body);
  const secrets = typeof secret === "string" ? [secret] : secret;
  if (!(await isSigned(signed, signatures, secrets))) throw new WebhookRefused("webhook-signature does not match");
  return id;
}

function isSecret(given: WebhookSecret | VerifyWebhookOptions): given is WebhookSecret {
  return typeof given === "string" || Array.isArray(given);
}

/** The header of a request; its first value if Node.js gives several. */
export function findHeader(headers: WebhookHeaders, name: string): string | undefined {
  if (isOfFetch(headers)) return headers.get(name) ?? undefined;
  const value = headers[name];
  return typeof value === "string" ? value : value?.[0];
}

function isOfFetch(headers: WebhookHeaders): headers is FetchHeaders {
  return typeof headers["get"] === "function";
}

/** Whether one of the secrets verifies one of the signatures. `crypto.subtle.verify` compares in constant time. */
async function isSigned(
  signed: Uint8Array<ArrayBuffer>,
  signatures: string,
  secrets: readonly string[],
): Promise<boolean> {
  const given = signatures.split(" ", signaturesMax);
  for (const secret of secrets) {
    const { prefix, algorithm, key } = toVerifier(secret);
    const imported = await crypto.subtle.importKey("raw", key, algorithm, false, ["verify"]);
    const own = given.flatMap((text) => (text.startsWith(prefix) ? findBase64(text.slice(prefix.length)) : []));
    for (const signature of own) {
      if (await crypto.subtle.verify(algorithm.name, imported, signature, signed)) return true;
    }
  }
  return false;
}

/** How a secret verifies signatures. A signature without `prefix` does not count. */
interface Verifier {
  readonly prefix: string;
  readonly algorithm: { readonly name: string; readonly hash?: string };
  readonly key: Uint8Array<ArrayBuffer>;
}

const publicKeyBytes = 32;

/**
 * The verifier of a secret. The key of `whsec_<Base64>` is the decoded bytes, and the key of a plain secret is its UTF-8 bytes.
 * @throws TypeError for an empty secret, a private key, or a malformed public key.
 */
function toVerifier(secret: string): Verifier {
  if (secret === "") throw new TypeError("the secret is empty: everybody can sign with it");
  if (secret.startsWith("whsk_")) {
    throw new TypeError("whsk_… is the broker's private key: verify with its public key whpk_…");
  }
  if (secret.startsWith("whpk_")) {
    const [key] = findBase64(secret.slice("whpk_".length));
    if (key?.length !== publicKeyBytes)
      throw new TypeError(`whpk_ is not followed by ${publicKeyBytes} bytes in Base64`);
    return { prefix: "v1a,", algorithm: { name: "Ed25519" }, key };
  }
  const encoded = secret.startsWith("whsec_") ? secret.slice("whsec_".length) : "";
  const key = (encoded === "" ? undefined : findBase64(encoded)[0]) ?? encoder.encode(secret);
  return { prefix: "v1,", algorithm: { name: "HMAC", hash: "SHA-256" }, key };
}

/** The decoded bytes as the only element; none if the text is not Base64 with padding. */
function findBase64(text: string): readonly Uint8Array<ArrayBuffer>[] {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? [fromBase64(text)] : [];
}

function joined(head: Uint8Array, tail: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(head.length + tail.length);
  bytes.set(head);
  bytes.set(tail, head.length);
  return bytes;
}
