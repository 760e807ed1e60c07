import { decodeEvents } from "@stele/wire";
import type { Event, EventBatch } from "../domain/event.ts";
import { advance } from "../domain/position.ts";

/** Decoded events by batch: all readers of a batch share one decoding, for as long as the batch is referenced. */
const decoded = new WeakMap<EventBatch, readonly Event[]>();

export type EventPlace = Pick<Event, "topic" | "blockNumber" | "sequence" | "position">;

/** Place of the event at `index` (from 0) of a batch; undefined outside the batch. Works also after the store has dropped the batch's events. */
export function placeIn(batch: EventBatch, index: number): EventPlace | undefined {
  if (index < 0 || index >= batch.count) return undefined;
  const { topic, blockNumber } = batch;
  const position = advance(batch.firstPosition, index);
  return { topic, blockNumber, sequence: batch.firstSequence + index, position };
}

/** The events of a batch, in order. Its bytes were checked when it was indexed. */
export function eventsOf(batch: EventBatch): readonly Event[] {
  const known = decoded.get(batch);
  if (known !== undefined) return known;
  const { topic, blockNumber } = batch;
  const events = decodeEvents(batch.events).map((payload, index) => ({
    topic,
    blockNumber,
    sequence: batch.firstSequence + index,
    position: advance(batch.firstPosition, index),
    content: payload.content,
    extensions: payload.extensions,
    batch,
  }));
  decoded.set(batch, events);
  return events;
}
