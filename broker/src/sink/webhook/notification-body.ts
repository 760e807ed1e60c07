import type { Event } from "../../domain/event.ts";
import { toClientsId } from "../../domain/subscription.ts";
import type { Notification, NotifiedEvent } from "../../ports/sink.ts";
import type { EventPlaces } from "../event-places.ts";

/** Approximate size of a request around its event: head and envelope. */
const envelopeBytes = 512;

/** Text, or bytes of text in UTF-8. */
type Part = string | Buffer;

/** Encodes notifications in the form `interface`, each event once: all subscriptions of a topic share the event object. */
export class NotificationEncoder {
  readonly #places: EventPlaces | undefined;
  /** Encoded events, as long as the events live. */
  readonly #encoded = new WeakMap<Event, Buffer>();

  /** With `places`, every event includes its place on the chain. */
  constructor(places?: EventPlaces) {
    this.#places = places;
  }

  /** The body of a RESTful callback: `{subscriptionId, event}`, or `{subscriptionId, events}` of a batch. */
  encode(notification: Notification): Buffer {
    return join(this.#partsOf(notification));
  }

  /** The body of a JsonRPC callback: a request with the fields of {@link encode} as parameters, and the method `onEvent`, or `onEvents` of a batch. */
  encodeCall(notification: Notification, id: string): Buffer {
    const method = notification.batch === undefined ? "onEvent" : "onEvents";
    const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"${method}","params":`;
    return join([head, ...this.#partsOf(notification), "}"]);
  }

  /** Approximate size of a request with one event. Encodes the event, which the body uses later, but does not build the body. */
  bytesOf(notification: Notification): number {
    return this.#encodeEvent(notification).length + envelopeBytes;
  }

  #partsOf(notification: Notification): readonly Part[] {
    const { subscription, batch } = notification;
    const head = `{"subscriptionId":${JSON.stringify(toClientsId(subscription.id))}`;
    if (batch === undefined) return [`${head},"event":`, this.#encodeEvent(notification), "}"];
    const events = batch.flatMap((notified) => [",", this.#encodeEvent(notified)]);
    return [`${head},"events":[`, ...events.slice(1), "]}"];
  }

  #encodeEvent({ event, eventId }: NotifiedEvent): Buffer {
    const earlier = this.#encoded.get(event);
    if (earlier !== undefined) return earlier;
    const { topic, content } = event;
    const base64 = Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString("base64");
    const extensions = Object.fromEntries(this.#places?.extensionsOf(event) ?? event.extensions);
    const encoded = Buffer.from(JSON.stringify({ topic, content: base64, extensions, eventId }));
    this.#encoded.set(event, encoded);
    return encoded;
  }
}

/** The parts as one piece of memory. */
function join(parts: readonly Part[]): Buffer {
  let length = 0;
  for (const part of parts) length += Buffer.byteLength(part);
  const joined = Buffer.allocUnsafe(length);
  let at = 0;
  for (const part of parts) at += typeof part === "string" ? joined.write(part, at) : part.copy(joined, at);
  return joined;
}
