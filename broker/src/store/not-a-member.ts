import { BrokerError } from "@stele/wire";

/** The error for a node whose membership has ended. */
export function notAMember(): BrokerError {
  return new BrokerError("storeUnreachable", { details: "this node is no member any more" });
}
