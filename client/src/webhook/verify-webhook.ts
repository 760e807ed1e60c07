import { isRecord } from "../http-door.ts";
import { fromBase64 } from "../lib/base64.ts";
import { type ReceivedEvent, toReceivedEvent } from "../tail/received-event.ts";

/** Headers as node, Express and Fastify have them, or as `fetch` has them. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/** A callback of a broker. */
export interface Webhook {
  /** `ping` asks whether this receiver wants callbacks; it has no event. */
  readonly kind: "event" | "ping";
  /** The same for each repeat: the eventId, or the identifier of a ping. */
  readonly id: string;
  readonly subscriptionId: string;
  /** Undefined for a ping. */
  readonly event: ReceivedEvent | undefined;
  /** Whether the subscription was made over JSON-RPC, so that the answer has to be a JSON-RPC response. */
  readonly isJsonRpc: boolean;
}

/** With several, one is enough, so that a secret can be replaced. */
export type WebhookSecret = string | readonly string[];

export interface VerifyWebhookOptions {
  readonly secret: WebhookSecret;
  /** How old, or how far in the future, a callback may be, in seconds. 300 if left out. */
  readonly toleranceS?: number | undefined;
  /** Milliseconds since the epoch; the clock's if left out. */
  readonly now?: number | undefined;
}

/** The callback is not one of the broker, or too old. Answer with status 401. */
export class WebhookRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = "WebhookRefused";
  }
}

const toleranceDefaultS = 300;
const secretPrefix = "whsec_";
const encoder = new TextEncoder();

/**
 * Verifies the signature of a callback (Standard Webhooks 1.0) and reads it. `rawBody` must be the bytes as they came, before any parser. `given` is the secret of
 * the subscription, or an object with it.
 * @throws WebhookRefused
 */
export async function verifyWebhook(
  rawBody: string | Uint8Array,
  headers: WebhookHeaders,
  given: WebhookSecret | VerifyWebhookOptions,
): Promise<Webhook> {
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
  return readWebhook(new TextDecoder().decode(body), id);
}

function isSecret(given: WebhookSecret | VerifyWebhookOptions): given is WebhookSecret {
  return typeof given === "string" || Array.isArray(given);
}

/** Reads the body of a callback, in either form. @throws WebhookRefused */
function readWebhook(text: string, id: string): Webhook {
  const body = parse(text);
  const isJsonRpc = isRecord(body) && body["jsonrpc"] === "2.0";
  const params = isJsonRpc ? body["params"] : body;
  if (!isRecord(body) || !isRecord(params) || typeof params["subscriptionId"] !== "string") {
    throw new WebhookRefused("the body is no callback");
  }
  const common = { id, subscriptionId: params["subscriptionId"], isJsonRpc };
  const isPing = isJsonRpc ? body["method"] === "ping" : params["ping"] !== undefined;
  if (isPing) return { kind: "ping", ...common, event: undefined };
  try {
    return { kind: "event", ...common, event: toReceivedEvent(params["event"]) };
  } catch {
    throw new WebhookRefused("the body has no event");
  }
}

/** The header of a request; the first one if there are several. */
export function findHeader(headers: WebhookHeaders, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const value = headers[name];
  return typeof value === "string" ? value : value?.[0];
}

/** Compares in constant time, as `verify` does. */
async function isSigned(
  signed: Uint8Array<ArrayBuffer>,
  signatures: string,
  secrets: readonly string[],
): Promise<boolean> {
  const given = signatures.split(" ").flatMap((text) => (text.startsWith("v1,") ? findBase64(text.slice(3)) : []));
  for (const secret of secrets) {
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    const key = await crypto.subtle.importKey("raw", toKey(secret), algorithm, false, ["verify"]);
    for (const signature of given) if (await crypto.subtle.verify("HMAC", key, signature, signed)) return true;
  }
  return false;
}

/** The decoded bytes of `whsec_<Base64>`, and the UTF-8 bytes of any other secret. */
function toKey(secret: string): Uint8Array<ArrayBuffer> {
  const encoded = secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : "";
  return (encoded === "" ? undefined : findBase64(encoded)[0]) ?? encoder.encode(secret);
}

/** No element if the text is no Base64 with padding. */
function findBase64(text: string): readonly Uint8Array<ArrayBuffer>[] {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? [fromBase64(text)] : [];
}

function joined(head: Uint8Array, tail: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(head.length + tail.length);
  bytes.set(head);
  bytes.set(tail, head.length);
  return bytes;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
