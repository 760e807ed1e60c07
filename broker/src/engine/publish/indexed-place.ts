import type { TopicName } from "../../domain/topic-name.ts";
import type { BatchOutcome } from "../../ports/ledger.ts";
import type { DraftBatch } from "./draft.ts";

/** Identifies a batch by its topic and its place in the index. */
export interface IndexedPlace {
  readonly topic: TopicName;
  readonly sequence: number;
  readonly blockNumber: number;
}

/** The last committed batch of the highest block. If strangers filled the block, this batch is the first that the index leaves out. */
export function newestOf(batches: readonly DraftBatch[], outcomes: readonly BatchOutcome[]): IndexedPlace | undefined {
  let newest: IndexedPlace | undefined;
  for (const [index, outcome] of outcomes.entries()) {
    const topic = batches[index]?.topic.name;
    if (outcome.status !== "committed" || topic === undefined) continue;
    const { firstSequence: sequence, blockNumber } = outcome;
    if (newest === undefined || blockNumber >= newest.blockNumber) newest = { topic, sequence, blockNumber };
  }
  return newest;
}
