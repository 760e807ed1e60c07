import { BrokerError } from "@stele/wire";

/** The error for a node whose membership has ended. */
export function notAMember(): BrokerError {
  return new BrokerError("storeUnreachable", { details: "the membership of this node has ended" });
}
