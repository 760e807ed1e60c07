import type { SpanAttributes } from "../ports/tracing.ts";

/** What every span says of its messages. */
export function messageAttributes(
  operation: "publish" | "commit" | "deliver",
  { topic, eventId }: { readonly topic: string; readonly eventId?: string },
): SpanAttributes {
  return {
    "messaging.system": "stele",
    "messaging.operation.name": operation,
    "messaging.destination.name": topic,
    "messaging.message.id": eventId,
  };
}
