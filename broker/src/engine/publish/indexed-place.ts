import type { TopicName } from "../../domain/topic-name.ts";
import type { BatchOutcome, OutgoingBatch } from "../../ports/ledger.ts";

/** A batch and its place in the index. On another branch of the chain, another batch may have the place. */
export interface IndexedPlace {
  readonly topic: TopicName;
  readonly sequence: number;
  readonly blockNumber: number;
  /** The encoded events. */
  readonly events: Uint8Array;
}

/** The last committed batch of the highest block. If strangers filled the block, this batch is the first that the index leaves out. */
export function newestOf(
  batches: readonly OutgoingBatch[],
  outcomes: readonly BatchOutcome[],
): IndexedPlace | undefined {
  let newest: IndexedPlace | undefined;
  for (const [index, outcome] of outcomes.entries()) {
    const batch = batches[index];
    if (outcome.status !== "committed" || batch === undefined) continue;
    const { firstSequence: sequence, blockNumber } = outcome;
    const { topic, events } = batch;
    if (newest === undefined || blockNumber >= newest.blockNumber) newest = { topic, sequence, blockNumber, events };
  }
  return newest;
}
