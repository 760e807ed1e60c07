import type { Event } from "../../domain/event.ts";
import { toClientsId } from "../../domain/subscription.ts";
import type { Notification, NotifiedEvent } from "../../ports/sink.ts";
import type { EventPlaces } from "../event-places.ts";

/** Approximate size of a request around its event: head and envelope. */
const envelopeBytes = 512;

/** Encodes notifications in the interface's form, each event once: all subscriptions of a topic share the event object. */
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
    return Buffer.concat([...this.#partsOf(notification)]);
  }

  /** The body of a JsonRPC callback: a request with those fields as parameters, and the method `onEvent`, or `onEvents` of a batch. */
  encodeCall(notification: Notification, id: string): Buffer {
    const method = notification.batch === undefined ? "onEvent" : "onEvents";
    const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"${method}","params":`;
    return Buffer.concat([Buffer.from(head), ...this.#partsOf(notification), Buffer.from("}")]);
  }

  /** Approximate size of a request with that body, one event. Encodes the event, which the body then contains, but not the body. */
  bytesOf(notification: Notification): number {
    return this.#encodeEvent(notification).length + envelopeBytes;
  }

  *#partsOf(notification: Notification): Iterable<Buffer> {
    const { subscription, batch } = notification;
    const head = `{"subscriptionId":${JSON.stringify(toClientsId(subscription.id))}`;
    if (batch === undefined) {
      yield Buffer.from(`${head},"event":`);
      yield this.#encodeEvent(notification);
      yield Buffer.from("}");
      return;
    }
    yield Buffer.from(`${head},"events":[`);
    for (const [index, notified] of batch.entries()) {
      if (index > 0) yield Buffer.from(",");
      yield this.#encodeEvent(notified);
    }
    yield Buffer.from("]}");
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
