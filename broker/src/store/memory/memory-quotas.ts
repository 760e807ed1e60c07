import { countsFor, type OverQuota, type StoredQuota } from "../../domain/quota.ts";
import { findReceiver } from "../../domain/receiver.ts";
import type { Delivery, Subscription } from "../../domain/subscription.ts";

/** The first quota that would be exceeded if a callback subscription with this delivery joined `others`; undefined if there is none. */
export function findExceeded(
  quotas: readonly StoredQuota[],
  others: Iterable<Subscription>,
  delivery: Delivery,
): OverQuota | undefined {
  const rows = quotas.length === 0 ? [] : [...others];
  const quota = quotas.find((one) => {
    const owned = rows.filter(({ principal }) => countsFor(one, principal));
    return one.what === "callbackHosts" ? exceedsReceivers(one, owned, delivery) : owned.length >= one.max;
  });
  return quota && { status: "over-quota", quota };
}

function exceedsReceivers({ max }: StoredQuota, owned: readonly Subscription[], delivery: Delivery): boolean {
  const receivers = new Set(owned.map((row) => receiverOf(row.delivery)));
  return !receivers.has(receiverOf(delivery)) && receivers.size >= max;
}

function receiverOf(delivery: Delivery): string | undefined {
  return delivery.kind === "webhook" ? findReceiver(delivery.url) : undefined;
}
