import type { TopicName } from "../../domain/topic-name.ts";
import type { BatchOutcome, BlockRef, OutgoingBatch } from "../../ports/ledger.ts";

/** The place of a committed batch, in a block of one branch of the chain: on another branch, another batch may have the sequence. */
export interface IndexedPlace {
  readonly topic: TopicName;
  readonly sequence: number;
  readonly block: BlockRef;
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
    const { firstSequence: sequence, blockNumber: number, blockHash: hash } = outcome;
    if (newest !== undefined && number < newest.block.number) continue;
    newest = { topic: batch.topic, sequence, block: { number, hash } };
  }
  return newest;
}
