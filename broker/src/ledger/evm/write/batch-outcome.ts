import { isBeyondLastSequence } from "../../../domain/sequence.ts";
import type { BatchOutcome } from "../../../ports/ledger.ts";
import type { ContractLog } from "../read/parse-log.ts";

/** The outcome that a log of our transaction reports for a batch; undefined for other logs. */
export function toOutcome(log: ContractLog, blockNumber: number): BatchOutcome | undefined {
  if (log.kind === "batch-rejected") return { status: "rejected", reason: log.reason };
  if (log.kind !== "events-published") return undefined;
  const { firstSequence, count, blockHash, transactionHash } = log;
  return isBeyondLastSequence(firstSequence, count)
    ? { status: "rejected", reason: "sequence-spent" }
    : { status: "committed", firstSequence, blockNumber, blockHash, transactionHash };
}
