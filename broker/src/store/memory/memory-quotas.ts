import { countsFor, type OverQuota, type StoredQuota } from "../../domain/quota.ts";
import { findReceiver } from "../../domain/receiver.ts";
import type { Delivery, Subscription } from "../../domain/subscription.ts";

/** The first of some quotas that one more callback subscription beside the others would exceed. */
export function findExceeded(
  quotas: readonly StoredQuota[],
  others: Iterable<Subscription>,
  delivery: Delivery,
): OverQuota | undefined {
  const rows = quotas.length === 0 ? [] : [...others];
  const quota = quotas.find((one) => {
    const owned = rows.filter(({ principal }) => countsFor(one, principal));
    return one.what === "callbackHosts" ? isHostTooMany(one, owned, delivery) : owned.length >= one.max;
  });
  return quota && { status: "over-quota", quota };
}

function isHostTooMany({ max }: StoredQuota, owned: readonly Subscription[], delivery: Delivery): boolean {
  const hosts = new Set(owned.map((row) => receiverOf(row.delivery)));
  return !hosts.has(receiverOf(delivery)) && hosts.size >= max;
}

function receiverOf(delivery: Delivery): string | undefined {
  return delivery.kind === "webhook" ? findReceiver(delivery.url) : undefined;
}
