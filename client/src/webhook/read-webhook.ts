import { isRecord } from "../http-transport.ts";
import { type ReceivedEvent, toReceivedEvent } from "../tail/received-event.ts";
import { WebhookRefused } from "./webhook-refused.ts";

/** A callback of a broker. */
export interface Webhook {
  /** `ping` asks whether this receiver wants callbacks; it has no event. */
  readonly kind: "event" | "batch" | "ping";
  /** The same for each repeat: the eventId, or the identifier of a batch or a ping. */
  readonly id: string;
  readonly subscriptionId: string;
  /** In order. A ping has none. A batch is accepted or repeated as a whole. */
  readonly events: readonly ReceivedEvent[];
  /** Whether the subscription was made over JSON-RPC, so that the answer has to be a JSON-RPC response. */
  readonly isJsonRpc: boolean;
}

/** Reads the body of a callback whose signature is verified, in the form of REST or of JSON-RPC. @throws WebhookRefused; TypeError for CloudEvents. */
export function readWebhook(text: string, id: string): Webhook {
  const body = parse(text);
  if (isCloudEvents(body)) {
    throw new TypeError(
      "this subscription sends CloudEvents: verify with verifySignature, and read the body with the package cloudevents",
    );
  }
  const isJsonRpc = isRecord(body) && body["jsonrpc"] === "2.0";
  const params = isJsonRpc ? body["params"] : body;
  if (!isRecord(body) || !isRecord(params) || typeof params["subscriptionId"] !== "string") {
    throw new WebhookRefused("the body is not a callback");
  }
  const common = { id, subscriptionId: params["subscriptionId"], isJsonRpc };
  const isPing = isJsonRpc ? body["method"] === "ping" : params["ping"] !== undefined;
  if (isPing) return { kind: "ping", ...common, events: [] };
  const { event, events } = params;
  const isBatch = Array.isArray(events);
  return { kind: isBatch ? "batch" : "event", ...common, events: readEvents(isBatch ? events : [event]) };
}

function readEvents(values: readonly unknown[]): readonly ReceivedEvent[] {
  try {
    return values.map(toReceivedEvent);
  } catch {
    throw new WebhookRefused("an event of the body is missing or malformed");
  }
}

/** Whether the body is a CloudEvent or a batch of CloudEvents. */
function isCloudEvents(body: unknown): boolean {
  const first: unknown = Array.isArray(body) ? body[0] : body;
  return isRecord(first) && typeof first["specversion"] === "string";
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
