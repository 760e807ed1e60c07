import { toClientsId } from "../../../domain/subscription.ts";
import type { CallbackTarget } from "../../../ports/sink.ts";

/**
 * The body of a ping: a notification of an impossible event, with blank topic, content and eventId. A receiver that does not know pings can parse
 * it; over JSON-RPC, a receiver that does not know the method says so.
 */
export function encodePing({ id, format }: CallbackTarget, pingId: string): Buffer {
  const subscriptionId = toClientsId(id);
  const body =
    format === "JsonRPC"
      ? { jsonrpc: "2.0", id: pingId, method: "ping", params: { subscriptionId } }
      : { subscriptionId, ping: pingId, event: { topic: "", content: "", extensions: {}, eventId: "" } };
  return Buffer.from(JSON.stringify(body));
}
