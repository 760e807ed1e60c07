import { BrokerError, isBrokerError } from "@stele/wire";
import { type BatchOutcome, MayNotStartError } from "../../ports/ledger.ts";

/** The error for the callers of a batch that was not committed. */
export function toRefusal(outcome: Exclude<BatchOutcome, { status: "committed" }> | undefined): BrokerError {
  if (outcome === undefined)
    return new BrokerError("unknown", { details: "the ledger answered fewer batches than it was given" });
  if (outcome.status === "too-large")
    return new BrokerError("contentTooLong", { details: "the event does not fit into a transaction of this chain" });
  if (outcome.reason === "closed-topic") return new BrokerError("topicClosed");
  if (outcome.reason === "unknown-topic") return new BrokerError("topicNotExist");
  if (outcome.reason === "not-a-writer") return new BrokerError("writerRefused");
  if (outcome.reason === "sequence-spent")
    return new BrokerError("transactionFailed", { details: "the topic has no sequences left: publish to another" });
  return new BrokerError("transactionFailed", { details: `the registry refused the batch: ${outcome.reason}` });
}

/** The error for a committed batch that the index does not have. */
export function notIndexed(blockNumber: number, cause?: unknown): BrokerError {
  return new BrokerError("transactionTimeout", { details: `block ${blockNumber} is not indexed yet`, cause });
}

/**
 * The error for the callers of an append that threw. A node whose membership ended before it sent the transaction refuses like a node that is not a member:
 * 200207.
 */
export function toAppendRefusal(error: unknown): unknown {
  if (!hasNotStarted(error)) return error;
  const details = "this node's membership ended before the node sent the transaction";
  return new BrokerError("storeUnreachable", { details, cause: error.cause });
}

/** Whether the ledger sent nothing, because this node's membership had ended. */
export function hasNotStarted(error: unknown): error is BrokerError {
  return isBrokerError(error) && error.cause instanceof MayNotStartError;
}

/** Whether the callers get TIMEOUT for the error: the transaction was sent, and its outcome is not known in time. */
export function isFateUnknown(error: unknown): boolean {
  return isBrokerError(error, "transactionTimeout");
}
