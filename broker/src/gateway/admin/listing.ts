import type { SubscriptionEntry, SubscriptionListing } from "@stele/wire";
import type { SubscriptionStatus } from "../../engine/broker.ts";

/** The admin listing of one node, which is known to others by `address`, host:port. */
export function toListing(address: string, subscriptions: readonly SubscriptionStatus[]): SubscriptionListing {
  return { [address]: Object.fromEntries(subscriptions.map((status) => [status.id, toEntry(status)])) };
}

function toEntry(status: SubscriptionStatus): SubscriptionEntry {
  return {
    interfaceType: status.interfaceType,
    notifyingEventCount: String(status.notifyingCount),
    notifiedEventCount: String(status.notifiedCount),
    notifyTimeStamp: toTimeStamp(status.notifiedAt),
    subscribeId: status.id,
    topicName: status.filter,
  };
}

/** `YYYY-MM-DD HH:MM:SS`, UTC. */
function toTimeStamp(time: number): string {
  return new Date(time).toISOString().slice(0, 19).replace("T", " ");
}
