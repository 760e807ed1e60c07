import { BrokerError, quote } from "@stele/wire";
import type { Subscription } from "../../domain/subscription.ts";
import type { SubscriptionMove } from "../../ports/subscription-search.ts";
import type { SubscriptionOrder } from "./calls.ts";

/** Whether the state of a subscription allows an order. @throws BrokerError 100507. */
export function checkState({ state }: Subscription, { kind }: Pick<SubscriptionOrder, "kind">): void {
  if (state === "locked" && kind !== "pause" && kind !== "change" && kind !== "discard") {
    const details = "its secret cannot be decrypted: its owner has to subscribe again with the secret";
    throw new BrokerError("subscriptionHeld", { details });
  }
  if (state === "paused" && (kind === "retry" || kind === "redeliver")) {
    throw new BrokerError("subscriptionHeld", { details: "it is paused: resume it" });
  }
}

/** The refusal to resume a subscription whose owner has no rights. */
export function withoutRights({ principal }: Subscription): BrokerError {
  const details =
    principal === undefined
      ? "it was made without a key, so it belongs to nobody: subscribe again with its identifier and the key of an admin"
      : `no key of its owner ${quote(principal)} is valid: give the owner one first`;
  return new BrokerError("accessDenied", { details });
}

/** The state that an order leads to; empty if it keeps the state. */
export function stateAfter({ state }: Subscription, { kind }: SubscriptionOrder): Pick<SubscriptionMove, "state"> {
  if (kind === "pause") return { state: "paused" };
  if (kind === "resume" || (kind === "retry" && state === "suspended")) return { state: "active" };
  return {};
}
