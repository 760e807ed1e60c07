import type { Event } from "../../domain/event.ts";
import type { Notification } from "../../ports/sink.ts";

/** Events are objects that all subscriptions of a topic share; so is their encoding, for as long as they live. */
const encodedEvents = new WeakMap<Event, Buffer>();

/** The body of a callback: RESTful, `{subscriptionId, event}`; JsonRPC, a request of method `onEvent` whose id is the eventId. */
export function encodeNotification(notification: Notification): Buffer {
  const { subscription, eventId } = notification;
  const members = `{"subscriptionId":${JSON.stringify(subscription.id)},"event":`;
  const event = encodeEvent(notification);
  if (subscription.interfaceType !== "JsonRPC") return joinBody(members, { event, after: "}" });
  return joinBody(`{"jsonrpc":"2.0","id":${JSON.stringify(eventId)},"method":"onEvent","params":${members}`, {
    event,
    after: "}}",
  });
}

function joinBody(before: string, { event, after }: { event: Buffer; after: string }): Buffer {
  return Buffer.concat([Buffer.from(before), event, Buffer.from(after)]);
}

function encodeEvent({ event, eventId }: Notification): Buffer {
  const earlier = encodedEvents.get(event);
  if (earlier !== undefined) return earlier;
  const { topic, content, extensions } = event;
  const base64 = Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString("base64");
  const encoded = Buffer.from(
    JSON.stringify({ topic, content: base64, extensions: Object.fromEntries(extensions), eventId }),
  );
  encodedEvents.set(event, encoded);
  return encoded;
}
