import { advance, blockNumberMax, endOfBlock, type Position } from "./position.ts";
import type { Address, Hash } from "./topic.ts";
import type { TopicName } from "./topic-name.ts";

/** User data of an event: key and value pairs in the producer's order. */
export type Extensions = readonly (readonly [key: string, value: string])[];

/** The input of a publish. */
export interface EventPayload {
  readonly content: Uint8Array;
  readonly extensions: Extensions;
}

/** An event with its place. `sequence` counts from 1 in its topic; it is 0 for an event that is not on the chain. */
export interface Event extends EventPayload {
  readonly topic: TopicName;
  readonly sequence: number;
  readonly blockNumber: number;
  readonly position: Position;
  /** The batch of the event; omitted where only the event matters. */
  readonly batch?: EventBatch;
}

/** An event that is not on the chain and reaches only sessions that are connected now. Its position is after every event of the index. */
export function toPassingEvent(topic: TopicName, payload: EventPayload): Event {
  return { topic, ...payload, sequence: 0, blockNumber: 0, position: endOfBlock(blockNumberMax) };
}

/** Whether the event has a place on the chain, and so an eventId. */
export function isCommitted({ sequence }: Pick<Event, "sequence">): boolean {
  return sequence > 0;
}

/**
 * Events of one topic that were committed together, as the chain stores them. `events` is the RLP list (see `encodeEvents`) of exactly `count`
 * events. The first has `firstSequence` and `firstPosition`; the others follow consecutively.
 */
export interface EventBatch {
  readonly topic: TopicName;
  readonly firstSequence: number;
  readonly firstPosition: Position;
  readonly count: number;
  readonly blockNumber: number;
  /** The transaction that committed the batch, and the index of the batch's log in the block. */
  readonly transactionHash: Hash;
  readonly logIndex: number;
  /** The publisher: the account that called the registry. */
  readonly publisher: Address;
  readonly events: Uint8Array;
  /** Set if the store has dropped its copy of the events; `events` is then empty. */
  readonly dropped?: DroppedEvents;
}

/** The position of the last event of a batch. */
export function lastPositionOf({ firstPosition, count }: Pick<EventBatch, "firstPosition" | "count">): Position {
  return advance(firstPosition, count - 1);
}

/** Whether the store has dropped its copy of the events. */
export function isDropped({ dropped }: Pick<EventBatch, "dropped">): boolean {
  return dropped !== undefined;
}

/** Bytes of a batch's events, also where the store has dropped its copy. */
export function eventBytesOf({ events, dropped }: Pick<EventBatch, "events" | "dropped">): number {
  return dropped?.byteCount ?? events.byteLength;
}

/** Length and checksum of events that a store has dropped, to check a copy that another source returns. */
export interface DroppedEvents {
  readonly byteCount: number;
  /** The result of checksumOfBytes. */
  readonly checksum: number;
}
