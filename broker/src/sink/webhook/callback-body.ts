import { createHash } from "node:crypto";
import { type EventForm, isCloudEvent } from "../../domain/delivery-options.ts";
import type { CallbackTarget, Notification } from "../../ports/sink.ts";
import { CloudEventEncoder, type CloudEventOptions, type EncodedBody } from "./cloud-event-body.ts";
import { NotificationEncoder } from "./notification-body.ts";

const jsonType = { "content-type": "application/json" };

/** Hexadecimal digits of a batch's digest: 64 bits. */
const digestDigits = 16;

/** Approximate bytes that one event adds to a request besides its content. */
const envelopeBytes = 1_024;

/** The form of callbacks to a subscription. A signature covers only the body, so a signed CloudEvent has its attributes in the body. */
function formOf({ options, secret }: CallbackTarget): EventForm {
  const form = options?.form ?? "interface";
  return form === "cloudevents-binary" && secret !== undefined ? "cloudevents" : form;
}

/** Whether callbacks are JSON-RPC requests, which need JSON-RPC responses. */
export function isRpc({ format, options }: CallbackTarget): boolean {
  return format === "JsonRPC" && !isCloudEvent(options);
}

/**
 * `webhook-id` of a request: the same for each attempt at the same events, and for no others. After a change of the subscription, a batch may have the same
 * first event and length as one that the receiver has handled, but other events.
 */
export function webhookIdOf({ eventId, batch }: Notification): string {
  if (batch === undefined) return eventId;
  const hash = createHash("sha256").update(batch.map((one) => one.eventId).join(" "));
  return `${eventId}-batch-${batch.length}-${hash.digest("hex").slice(0, digestDigits)}`;
}

/** Encodes notifications in the form that their subscription has. */
export class CallbackBodies {
  readonly #plain: NotificationEncoder;
  readonly #cloudEvents: CloudEventEncoder;

  constructor(options: CloudEventOptions) {
    this.#plain = new NotificationEncoder(options.places);
    this.#cloudEvents = new CloudEventEncoder(options);
  }

  encode(notification: Notification): EncodedBody {
    const { subscription, batch } = notification;
    const form = formOf(subscription);
    if (form === "interface") {
      const body = isRpc(subscription)
        ? this.#plain.encodeCall(notification, webhookIdOf(notification))
        : this.#plain.encode(notification);
      return { headers: jsonType, body };
    }
    if (batch !== undefined) return this.#cloudEvents.batch(batch);
    return form === "cloudevents" ? this.#cloudEvents.structured(notification) : this.#cloudEvents.binary(notification);
  }

  /** Approximate size of the request, in bytes. */
  bytesOf(notification: Notification): number {
    const { subscription, batch } = notification;
    if (batch === undefined && formOf(subscription) === "interface") return this.#plain.bytesOf(notification);
    let bytes = 0;
    for (const { event } of batch ?? [notification]) bytes += (event.content.byteLength * 4) / 3 + envelopeBytes;
    return Math.ceil(bytes);
  }
}
