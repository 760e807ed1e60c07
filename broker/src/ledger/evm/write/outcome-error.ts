import type { BrokerError } from "@stele/wire";
import { TransactionTooLarge } from "./pending-transaction.ts";
import { type RpcFailure, toBrokerError } from "../endpoint/rpc-failure.ts";

/** What a caller is told of a transaction that an endpoint refused. */
export function toOutcomeError(failure: RpcFailure): BrokerError | TransactionTooLarge {
  return failure.kind === "too-large" ? new TransactionTooLarge(failure.message) : toBrokerError(failure);
}
