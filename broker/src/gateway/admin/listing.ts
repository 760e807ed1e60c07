import type { SkippedListing, SubscriptionEntry } from "@stele/wire";
import { interfaceTypeOf } from "../../domain/subscription.ts";
import type { NodeListing, SkippedEntriesResult, SubscriptionStatus } from "../../engine/broker.ts";
import { chunksOf } from "../../lib/chunks.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";

/** Entries that are encoded in one step, into one piece of the listing; they take about 50 KB and half a millisecond. */
const entriesEncodedMax = 200;

/** The subscription listing as JSON, in pieces. `ownAddress` is host:port of this node. */
export async function encodeListing(
  nodes: readonly NodeListing[],
  { ownAddress, slices }: { readonly ownAddress: string; readonly slices: TimeSlices },
): Promise<readonly Buffer[]> {
  const pieces: Buffer[] = [];
  for (const { address, subscriptions } of nodes) {
    const before = pieces.length === 0 ? "{" : ",";
    pieces.push(Buffer.from(`${before}${JSON.stringify(address ?? ownAddress)}:{`));
    for (const [index, chunk] of [...chunksOf(subscriptions, entriesEncodedMax)].entries()) {
      pieces.push(Buffer.from(`${index === 0 ? "" : ","}${chunk.map(toMember).join(",")}`));
      await slices.pause();
    }
    pieces.push(Buffer.from("}"));
  }
  pieces.push(Buffer.from(pieces.length === 0 ? "{}" : "}"));
  return pieces;
}

/** The admin listing of the entries that the index of a group skipped. */
export function toSkippedListing({ groupId, entries }: SkippedEntriesResult): SkippedListing {
  const rows = entries.map(({ code, reason, blockNumber, transactionHash, logIndex, address, sender }) => ({
    reason: code,
    details: reason,
    blockNumber,
    transactionHash,
    logIndex,
    topicAddress: address,
    ...(sender !== undefined && { sender }),
  }));
  return { groupId, entries: rows };
}

function toMember(status: SubscriptionStatus): string {
  return `${JSON.stringify(status.id)}:${JSON.stringify(toEntry(status))}`;
}

function toEntry(status: SubscriptionStatus): SubscriptionEntry {
  return {
    interfaceType: interfaceTypeOf(status.delivery),
    notifyingEventCount: String(status.notifyingCount),
    notifiedEventCount: String(status.notifiedCount),
    notifyTimeStamp: toTimeStamp(status.notifiedAt),
    subscribeId: status.id,
    topicName: status.filter,
    ...(status.state === "suspended" || status.state === "paused" ? { state: status.state } : {}),
  };
}

/** `YYYY-MM-DD HH:MM:SS`, UTC. */
function toTimeStamp(time: number): string {
  return new Date(time).toISOString().slice(0, 19).replace("T", " ");
}
