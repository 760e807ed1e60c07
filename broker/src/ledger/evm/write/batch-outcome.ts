import { isBeyondLastSequence } from "../../../domain/sequence.ts";
import type { BatchOutcome } from "../../../ports/ledger.ts";
import type { ContractLog } from "../read/parse-log.ts";

/** What became of the batch that a log of our transaction is about; undefined for another log. */
export function toOutcome(log: ContractLog, blockNumber: number): BatchOutcome | undefined {
  if (log.kind === "batch-rejected") return { status: "rejected", reason: log.reason };
  if (log.kind !== "events-published") return undefined;
  const { firstSequence, count } = log;
  return isBeyondLastSequence(firstSequence, count)
    ? { status: "rejected", reason: "sequence-spent" }
    : { status: "committed", firstSequence, blockNumber };
}
