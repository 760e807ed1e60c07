import type { SpanAttributes } from "../ports/tracing.ts";

/** Attributes of every span about a message, by OpenTelemetry's conventions. */
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
