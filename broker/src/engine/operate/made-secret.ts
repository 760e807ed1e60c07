import { madeSecretBytes, secretToMake, toSecret } from "../../domain/signing-secret.ts";
import type { Randomness } from "../../ports/randomness.ts";
import type { SubscriptionOrder } from "./calls.ts";

export interface MadeOrder {
  readonly order: SubscriptionOrder;
  /** The new secret; undefined if the order asks for none. */
  readonly secret: string | undefined;
}

export function asksForSecret(order: SubscriptionOrder): boolean {
  return order.kind === "change" && order.change.secret === secretToMake;
}

/** The order with a new secret, if it asks for one. */
export function withMadeSecret(order: SubscriptionOrder, randomness: Pick<Randomness, "bytes">): MadeOrder {
  if (order.kind !== "change" || order.change.secret !== secretToMake) return { order, secret: undefined };
  const secret = toSecret(randomness.bytes(madeSecretBytes));
  return { order: { kind: "change", change: { ...order.change, secret } }, secret };
}
