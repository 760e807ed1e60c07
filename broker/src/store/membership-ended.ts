import { BrokerError } from "@stele/wire";

/** The error for a node whose membership has ended. */
export function membershipEnded(): BrokerError {
  return new BrokerError("storeUnreachable", {
    details: "this node's membership has ended; the node joins again by itself",
  });
}
