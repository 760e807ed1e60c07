import type { Position } from "./position.ts";
import type { Address, Hash } from "./topic.ts";
import type { TopicName } from "./topic-name.ts";

/** User data of an event: key and value pairs in the producer's order. */
export type Extensions = readonly (readonly [key: string, value: string])[];

/** The input of a publish. */
export interface EventPayload {
  readonly content: Uint8Array;
  readonly extensions: Extensions;
}

/** An event with its place. `sequence` counts from 1 in its topic. */
export interface Event extends EventPayload {
  readonly topic: TopicName;
  readonly sequence: number;
  readonly blockNumber: number;
  readonly position: Position;
  /** The batch of the event; omitted where only the event matters. */
  readonly batch?: EventBatch;
}

/**
 * Events of one topic that were committed together, as the chain stores them. `events` is the encoded list (DESIGN section 4.2) of exactly `count`
 * events. The first has `firstSequence` and `firstPosition`; the others follow consecutively.
 */
export interface EventBatch {
  readonly topic: TopicName;
  readonly firstSequence: number;
  readonly firstPosition: Position;
  readonly count: number;
  readonly blockNumber: number;
  /** The transaction that committed it, and the index of its log in the block. */
  readonly transactionHash: Hash;
  readonly logIndex: number;
  /** The publisher: the account that called the registry. */
  readonly publisher: Address;
  readonly events: Uint8Array;
}
