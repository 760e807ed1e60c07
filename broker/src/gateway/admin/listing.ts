import type { SkippedListing, SubscriptionEntry, SubscriptionListing } from "@stele/wire";
import type { NodeListing, SkippedEntriesResult, SubscriptionStatus } from "../../engine/broker.ts";

/** The admin listing; this node is known to others by `ownAddress`, host:port. */
export function toListing(ownAddress: string, nodes: readonly NodeListing[]): SubscriptionListing {
  const entries = nodes.map(({ address, subscriptions }): [string, SubscriptionListing[string]] => [
    address ?? ownAddress,
    Object.fromEntries(subscriptions.map((status) => [status.id, toEntry(status)])),
  ]);
  return Object.fromEntries(entries);
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
