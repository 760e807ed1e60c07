import { formatEventId } from "@stele/wire";
import type { Event } from "../../../domain/event.ts";
import { toPosition } from "../../../domain/position.ts";
import { parseSubscriptionId } from "../../../domain/subscription.ts";
import { parseTopicName } from "../../../domain/topic-name.ts";
import type { Notification } from "../../../ports/sink.ts";

export const sampleEvent: Event = {
  topic: parseTopicName("com/example"),
  content: Buffer.from("hello"),
  extensions: [
    ["svc-format", "json"],
    ["svc-note", "ä"],
  ],
  sequence: 59,
  blockNumber: 1124,
  position: toPosition(1124, 3),
};

/** A notification of the sample event to `subscription`. */
export function notificationTo(subscription: Partial<Notification["subscription"]>): Notification {
  return {
    subscription: {
      id: parseSubscriptionId("6f5902ac-237e-4c1d-9bf6-3bcbb5f9a9c1"),
      format: "RESTful",
      url: "http://127.0.0.1:65535/",
      secret: undefined,
      ...subscription,
    },
    event: sampleEvent,
    eventId: formatEventId({ topicDigest: "2cf24dba", sequence: 59, blockNumber: 1124 }),
  };
}
