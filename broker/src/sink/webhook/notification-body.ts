import type { Event } from "../../domain/event.ts";
import { toClientsId } from "../../domain/subscription.ts";
import type { Notification } from "../../ports/sink.ts";
import type { EventPlaces } from "../event-places.ts";

/** Approximate size of a request around its event: head and envelope. */
const envelopeBytes = 512;

/** Encodes notifications, each event once: all subscriptions of a topic share the event object. */
export class NotificationEncoder {
  readonly #places: EventPlaces | undefined;
  /** Encoded events, as long as the events live. */
  readonly #encoded = new WeakMap<Event, Buffer>();

  /** With `places`, every event includes its place on the chain. */
  constructor(places?: EventPlaces) {
    this.#places = places;
  }

  /** The body of a callback. RESTful: `{subscriptionId, event}`. JsonRPC: a request with the method `onEvent` and the eventId as id. */
  encode(notification: Notification): Buffer {
    const { subscription, eventId } = notification;
    const members = `{"subscriptionId":${JSON.stringify(toClientsId(subscription.id))},"event":`;
    const event = this.#encodeEvent(notification);
    if (subscription.format !== "JsonRPC") return joinBody(members, { event, after: "}" });
    return joinBody(`{"jsonrpc":"2.0","id":${JSON.stringify(eventId)},"method":"onEvent","params":${members}`, {
      event,
      after: "}}",
    });
  }

  /** Approximate size of a request with that body, computed without encoding it. */
  bytesOf(notification: Notification): number {
    return this.#encodeEvent(notification).length + envelopeBytes;
  }

  #encodeEvent({ event, eventId }: Notification): Buffer {
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

function joinBody(before: string, { event, after }: { event: Buffer; after: string }): Buffer {
  return Buffer.concat([Buffer.from(before), event, Buffer.from(after)]);
}
