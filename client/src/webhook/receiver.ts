import type { ReceivedEvent } from "../tail/received-event.ts";
import { BodyAlreadyRead } from "./read-body.ts";
import type { Webhook } from "./read-webhook.ts";
import { findHeader, verifyWebhook, type VerifyWebhookOptions, type WebhookHeaders } from "./verify-webhook.ts";
import { WebhookRefused } from "./webhook-refused.ts";

export interface ReceiverOptions extends Pick<VerifyWebhookOptions, "secret" | "toleranceS"> {
  /**
   * Handles an event. If this resolves, the broker counts the event as delivered; if it throws, the broker sends the event again later. The events of a
   * batch come one after another; if one throws, the whole batch comes again. An event may come twice, with the same eventId.
   */
  readonly onEvent: (event: ReceivedEvent, webhook: Webhook) => void | Promise<void>;
  /** Called with the error if a callback is not accepted. If left out, every error except WebhookRefused goes to `console.error`. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Brokers that may call, by the name in their request for consent; `*` for all. If left out, such a request gets status 405. */
  readonly allowedBrokers?: readonly string[] | undefined;
}

/** A request, in the same form for every kind of server. */
export interface ReceivedRequest {
  readonly method: string;
  readonly headers: WebhookHeaders;
  /** Reads the signed bytes; undefined if the body is too long. */
  readonly readBody: () => Promise<string | Uint8Array | undefined>;
}

export interface ReceiverAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const jsonType = { "content-type": "application/json" };
const textType = { "content-type": "text/plain; charset=utf-8" };

/** Answers one request of a broker. Never throws. */
export async function receive(request: ReceivedRequest, options: ReceiverOptions): Promise<ReceiverAnswer> {
  if (request.method === "OPTIONS" && options.allowedBrokers !== undefined) {
    return toConsent(findHeader(request.headers, "webhook-request-origin"), options.allowedBrokers);
  }
  if (request.method !== "POST") return toAnswer(405, { allow: "POST" });
  try {
    const rawBody = await request.readBody();
    if (rawBody === undefined) return toAnswer(413);
    const webhook = await verifyWebhook(rawBody, request.headers, options);
    for (const event of webhook.events) await options.onEvent(event, webhook);
    return webhook.isJsonRpc ? toRpcResponse(webhook.id) : toAnswer(204);
  } catch (error) {
    report(error, options);
    return toRefusal(error);
  }
}

function report(error: unknown, { onError }: ReceiverOptions): void {
  try {
    if (onError !== undefined) onError(error);
    else if (!(error instanceof WebhookRefused)) warn("webhook not accepted:", error);
  } catch (mistake) {
    warn("onError threw:", mistake);
  }
}

function warn(text: string, error: unknown): void {
  // oxlint-disable-next-line no-console -- Without `onError`, nothing else shows a mistake in the program.
  console.error(text, error);
}

/** The answer says what the sender or this server's programmer did wrong, but never shows what `onEvent` threw. */
function toRefusal(error: unknown): ReceiverAnswer {
  if (error instanceof WebhookRefused) return { status: 401, headers: textType, body: `${error.message}\n` };
  if (error instanceof BodyAlreadyRead) return { status: 500, headers: textType, body: `${error.message}\n` };
  return toAnswer(500);
}

function toAnswer(status: number, headers: Readonly<Record<string, string>> = {}): ReceiverAnswer {
  return { status, headers, body: "" };
}

function toRpcResponse(id: string): ReceiverAnswer {
  return { status: 200, headers: jsonType, body: JSON.stringify({ jsonrpc: "2.0", id, result: true }) };
}

/** Answers the validation request of CloudEvents (HTTP 1.1 Web Hooks, section 4). */
function toConsent(origin: string | undefined, allowed: readonly string[]): ReceiverAnswer {
  if (origin === undefined || !(allowed.includes("*") || allowed.includes(origin))) return toAnswer(403);
  return toAnswer(200, { "webhook-allowed-origin": origin });
}
