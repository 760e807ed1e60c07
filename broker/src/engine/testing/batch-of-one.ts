import { encodeEvents } from "@stele/wire";
import type { EventBatch } from "../../domain/event.ts";
import { toPosition } from "../../domain/position.ts";
import { parseTopicName } from "../../domain/topic-name.ts";

export interface BatchOfOneOptions {
  readonly topic: string;
  readonly blockNumber: number;
  /** Sequence of its event; 1 if left out. */
  readonly sequence?: number;
  /** Length of the event's content; 1 if left out. */
  readonly contentBytes?: number;
}

/** The only batch of its block, with one event. */
export function batchOfOne({ topic, blockNumber, sequence = 1, contentBytes = 1 }: BatchOfOneOptions): EventBatch {
  return {
    topic: parseTopicName(topic),
    firstSequence: sequence,
    firstPosition: toPosition(blockNumber, 0),
    transactionHash: "0x",
    publisher: "0x",
    logIndex: 0,
    count: 1,
    blockNumber,
    events: encodeEvents([{ content: new Uint8Array(contentBytes), extensions: [] }]),
  };
}
