import type { Position } from "./position.ts";
import type { Address, Hash } from "./topic.ts";
import type { TopicName } from "./topic-name.ts";

/** User data of an event: key and value pairs in the order in which the producer gave them. */
export type Extensions = readonly (readonly [key: string, value: string])[];

/** What a producer publishes. */
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
  /** The batch that it was committed in; left out where only the event matters. */
  readonly batch?: EventBatch;
}

/**
 * Events of one topic that were committed together, as they stand on the chain. `events` is the encoded list (DESIGN
 * section 4.2) of exactly `count` events; the first has `firstSequence` and `firstPosition`, the others follow one by one.
 */
export interface EventBatch {
  readonly topic: TopicName;
  readonly firstSequence: number;
  readonly firstPosition: Position;
  readonly count: number;
  readonly blockNumber: number;
  /** The transaction that committed it, and the place of its log in its block. */
  readonly transactionHash: Hash;
  readonly logIndex: number;
  /** Who published it: the account that called the registry. */
  readonly publisher: Address;
  readonly events: Uint8Array;
}
