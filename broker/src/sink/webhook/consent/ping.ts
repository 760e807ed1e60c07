import { randomUUID } from "node:crypto";
import { isCloudEvent } from "../../../domain/delivery-options.ts";
import { toClientsId } from "../../../domain/subscription.ts";
import type { CallbackTarget } from "../../../ports/sink.ts";
import type { MessageHeaders } from "../message-headers.ts";
import type { Message } from "../receiver-caller.ts";

/** Creates a ping, and signs it like a notification. */
export function createPing(target: CallbackTarget, headers: MessageHeaders): () => Message {
  const id = `ping-${randomUUID()}`;
  const body = encodePing(target, id);
  const isPlain = !isCloudEvent(target.options);
  const type = { "content-type": isPlain ? "application/json" : "application/cloudevents+json" };
  return () => ({ headers: { ...headers.ofMessage(target, { id, body }), ...type }, body });
}

/**
 * The body of a ping: a notification of an impossible event, with blank topic, content and eventId. A receiver that does not know pings can parse
 * it; over JSON-RPC, a receiver that does not know the method says so. A CloudEvent has a type of its own.
 */
export function encodePing({ id, format, options }: CallbackTarget, pingId: string): Buffer {
  const subscriptionId = toClientsId(id);
  if (isCloudEvent(options)) {
    const attributes = { specversion: "1.0", id: pingId, source: "urn:stele", type: "stele.ping" };
    return Buffer.from(
      JSON.stringify({ ...attributes, datacontenttype: "application/json", data: { subscriptionId } }),
    );
  }
  const body =
    format === "JsonRPC"
      ? { jsonrpc: "2.0", id: pingId, method: "ping", params: { subscriptionId } }
      : { subscriptionId, ping: pingId, event: { topic: "", content: "", extensions: {}, eventId: "" } };
  return Buffer.from(JSON.stringify(body));
}
