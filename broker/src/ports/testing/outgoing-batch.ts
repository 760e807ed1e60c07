import { encodeEvents } from "@stele/wire";
import type { EventPayload } from "../../domain/event.ts";
import type { Address } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { OutgoingBatch } from "../ledger.ts";

export interface Outgoing {
  readonly topic: TopicName;
  readonly address: Address;
  readonly events: readonly EventPayload[];
}

/** Encodes events for the ledger. */
export function toOutgoingBatch({ topic, address, events }: Outgoing): OutgoingBatch {
  return { topic, address, count: events.length, events: encodeEvents(events) };
}
