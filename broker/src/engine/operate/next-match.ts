import { BrokerError } from "@stele/wire";
import { lastPositionOf } from "../../domain/event.ts";
import { endOfBlock, type Position } from "../../domain/position.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { isPattern, matchesFilter } from "../../domain/topic-filter.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import type { Pauses } from "../../lib/time-slices.ts";
import type { Store } from "../../ports/store.ts";
import { type EventPlace, placeIn } from "../batch-events.ts";

/** Maximum number of reads of a search for the event that an order skips. One read gives at most 64 batches or 1 MiB. */
const matchReadsMax = 1_000;

export interface NextMatchParts {
  /** May leave out the content of events: the search needs none. */
  readonly store: Pick<Store, "findHead" | "readBatches">;
  readonly slices: Pauses;
}

/** The first event after the cursor that matches the filter; undefined if there is none. @throws BrokerError 200300 after too many reads without a result. */
export async function findNextMatch(
  { store, slices }: NextMatchParts,
  { groupId, filter, cursor }: Pick<Subscription, "groupId" | "filter" | "cursor">,
): Promise<EventPlace | undefined> {
  const head = await store.findHead(groupId);
  const upTo = endOfBlock(Math.max(0, head?.blockNumber ?? 0));
  const topic = isPattern(filter) ? undefined : parseTopicName(filter);
  const limits = topic === undefined ? { batchesMax: 64, bytesMax: 2 ** 20 } : { batchesMax: 1, bytesMax: 1 };
  let after: Position = cursor;
  for (let reads = 0; reads < matchReadsMax; reads += 1) {
    const batches = await store.readBatches(groupId, { after, upTo, topic, ...limits });
    for (const batch of batches) {
      if (!matchesFilter(filter, batch.topic)) continue;
      const found = placeIn(batch, Math.max(0, cursor + 1 - batch.firstPosition));
      if (found !== undefined) return found;
    }
    const last = batches.at(-1);
    if (last === undefined) return undefined;
    after = lastPositionOf(last);
    await slices.pause();
  }
  throw new BrokerError("busy", { details: "the next matching event lies far after the cursor" });
}
