import type { Subscription } from "../domain/subscription.ts";
import type { Pauses } from "../lib/time-slices.ts";
import type { Store } from "../ports/store.ts";

/** Maximum number of subscriptions per read. */
const subscriptionsReadMax = 500;

/** Every subscription in the store, page by page. */
export async function* subscriptionsOf(parts: {
  readonly store: Store;
  readonly slices: Pauses;
}): AsyncIterable<Subscription> {
  const { store, slices } = parts;
  for (let after: Subscription["id"] | undefined; ; ) {
    const page = await store.listSubscriptions({ after, limit: subscriptionsReadMax });
    for (const subscription of page) {
      yield subscription;
      await slices.pause();
    }
    after = page.at(-1)?.id;
    if (page.length < subscriptionsReadMax) return;
  }
}
