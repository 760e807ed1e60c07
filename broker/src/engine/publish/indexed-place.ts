import type { Hash } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { BatchOutcome, BlockRef, OutgoingBatch } from "../../ports/ledger.ts";

/** The place of a committed batch, in a block of one branch of the chain: on another branch, another batch may have the sequence. */
export interface IndexedPlace {
  readonly topic: TopicName;
  readonly sequence: number;
  readonly block: BlockRef;
  readonly transactionHash: Hash;
}

/** The places of the committed batches, by ascending blocks. If strangers filled the last block, the index leaves out the last batch first. */
export function placesOf(
  batches: readonly OutgoingBatch[],
  outcomes: readonly BatchOutcome[],
): readonly IndexedPlace[] {
  const places = outcomes.flatMap((outcome, index): readonly IndexedPlace[] => {
    const batch = batches[index];
    if (outcome.status !== "committed" || batch === undefined) return [];
    const { firstSequence: sequence, blockNumber: number, blockHash: hash, transactionHash } = outcome;
    return [{ topic: batch.topic, sequence, block: { number, hash }, transactionHash }];
  });
  return places.toSorted((left, right) => left.block.number - right.block.number);
}
