import type { SkippedListing, SubscriptionEntry, SubscriptionListing } from "@stele/wire";
import type { SkippedEntriesResult, SubscriptionStatus } from "../../engine/broker.ts";

/** The admin listing of one node, which is known to others by `address`, host:port. */
export function toListing(address: string, subscriptions: readonly SubscriptionStatus[]): SubscriptionListing {
  return { [address]: Object.fromEntries(subscriptions.map((status) => [status.id, toEntry(status)])) };
}

/** The admin listing of what was left out of a group's index. */
export function toSkippedListing({ groupId, entries }: SkippedEntriesResult): SkippedListing {
  const rows = entries.map(({ code, reason, blockNumber, transactionHash, logIndex, address }) => {
    return { reason: code, details: reason, blockNumber, transactionHash, logIndex, topicAddress: address };
  });
  return { groupId, entries: rows };
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
