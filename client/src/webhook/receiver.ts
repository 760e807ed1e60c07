import type { ReceivedEvent } from "../tail/received-event.ts";
import {
  findHeader,
  verifyWebhook,
  type VerifyWebhookOptions,
  type Webhook,
  type WebhookHeaders,
  WebhookRefused,
} from "./verify-webhook.ts";

export interface ReceiverOptions extends Pick<VerifyWebhookOptions, "secret" | "toleranceS"> {
  /**
   * Takes an event. The broker gets its answer once this resolves; if it throws, the broker sends the event again later. An event may come twice, with the
   * same eventId.
   */
  readonly onEvent: (event: ReceivedEvent, webhook: Webhook) => void | Promise<void>;
  /** Told why a callback was not accepted. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Brokers that may call, as they name themselves when they ask for consent; `*` for all. They are not told anything if this is left out. */
  readonly allowedBrokers?: readonly string[] | undefined;
}

/** A request as each server has it. */
export interface ReceivedRequest {
  readonly method: string;
  readonly headers: WebhookHeaders;
  readonly rawBody: string | Uint8Array;
}

export interface ReceiverAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Longest body that the handlers read: a content of 64 KiB as Base64 and its extensions, and much room for a broker that is set to more. */
export const bodyBytesMax = 8 * 1024 * 1024;
const jsonType = { "content-type": "application/json" };

/** Answers one request of a broker. Never throws. */
export async function receive(request: ReceivedRequest, options: ReceiverOptions): Promise<ReceiverAnswer> {
  if (request.method === "OPTIONS" && options.allowedBrokers !== undefined) {
    return toConsent(findHeader(request.headers, "webhook-request-origin"), options.allowedBrokers);
  }
  if (request.method !== "POST") return toAnswer(405, { allow: "POST" });
  try {
    const webhook = await verifyWebhook(request.rawBody, request.headers, options);
    if (webhook.event !== undefined) await options.onEvent(webhook.event, webhook);
    return webhook.isJsonRpc ? toRpcResponse(webhook.id) : toAnswer(204);
  } catch (error) {
    options.onError?.(error);
    return toAnswer(error instanceof WebhookRefused ? 401 : 500);
  }
}

export function toAnswer(status: number, headers: Readonly<Record<string, string>> = {}): ReceiverAnswer {
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
