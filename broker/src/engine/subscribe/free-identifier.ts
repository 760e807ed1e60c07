import { BrokerError, isBrokerError } from "@stele/wire";
import type { Subscription, SubscriptionId } from "../../domain/subscription.ts";
import type { Store } from "../../ports/store.ts";

type Sessions = { readonly sessions: Pick<Store["sessions"], "findFilterOwner"> };

/** @throws BrokerError 100108 if the identifier belongs to a session. */
export async function checkFree({ sessions }: Sessions, id: SubscriptionId): Promise<void> {
  const found = await sessions.findFilterOwner(id);
  if (found === undefined) return;
  throw new BrokerError("subscriptionElsewhere", {
    details: `the identifier belongs to a session of ${found.session.protocol}`,
  });
}

/**
 * Removes a new subscription if a session has begun with its identifier since {@link checkFree}. `Streams.begin` does the same for sessions. Since each of
 * them writes before it looks, one of them at least sees the other. @throws BrokerError 100108.
 */
export async function checkStillFree(
  store: Sessions & Pick<Store, "deleteSubscription">,
  made: Subscription,
): Promise<void> {
  try {
    await checkFree(store, made.id);
  } catch (error) {
    if (!isBrokerError(error, "subscriptionElsewhere")) return; // The store did not answer, but the subscription is in it.
    await store.deleteSubscription(made);
    throw error;
  }
}
