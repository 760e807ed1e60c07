import { BrokerError } from "@stele/wire";
import { endOfBlock, minOf, type Position } from "../../domain/position.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { isPattern, matchesFilter } from "../../domain/topic-filter.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import type { Pauses } from "../../lib/time-slices.ts";
import type { Store } from "../../ports/store.ts";
import { type EventPlace, placeIn } from "../batch-events.ts";

/** Reads in search of the event that an order skips, each of up to 64 batches or 1 MiB. */
const matchReadsMax = 1_000;

/** Reads for one look at a subscription. */
export const lookReadsMax = 16;

export interface NextMatchParts {
  /** The content of events is not read, so it may be one that leaves out those that were dropped. */
  readonly store: Pick<Store, "findHead" | "readBatches">;
  readonly slices: Pauses;
  /** Reads in search of it. */
  readonly readsMax?: number;
}

/** A filter, and the cursor behind which its events are looked for. */
type MatchStanding = Pick<Subscription, "filter" | "cursor">;

/** The first event after the cursor that matches the filter; undefined if there is none. @throws BrokerError 200300 when it lies too far. */
export function findNextMatch(
  parts: NextMatchParts,
  { groupId, filter, cursor }: MatchStanding & Pick<Subscription, "groupId">,
): Promise<EventPlace | undefined> {
  return findFirstMatch(parts, { groupId, standings: [{ filter, cursor }] });
}

/** The first event that matches one of several filters behind its cursor. @throws BrokerError as {@link findNextMatch}. */
export async function findFirstMatch(
  { store, slices, readsMax = matchReadsMax }: NextMatchParts,
  { groupId, standings }: Pick<Subscription, "groupId"> & { readonly standings: readonly MatchStanding[] },
): Promise<EventPlace | undefined> {
  const [first] = standings;
  if (first === undefined) return undefined;
  const head = await store.findHead(groupId);
  const upTo = endOfBlock(Math.max(0, head?.blockNumber ?? 0));
  const topic = standings.length > 1 || isPattern(first.filter) ? undefined : parseTopicName(first.filter);
  const limits = topic === undefined ? { batchesMax: 64, bytesMax: 2 ** 20 } : { batchesMax: 1, bytesMax: 1 };
  let after: Position = standings.reduce((lowest, { cursor }) => minOf(lowest, cursor), first.cursor);
  for (let reads = 0; reads < readsMax; reads += 1) {
    const batches = await store.readBatches(groupId, { after, upTo, topic, ...limits });
    for (const batch of batches) {
      const indexes = standings
        .filter(({ filter }) => matchesFilter(filter, batch.topic))
        .map(({ cursor }) => Math.max(0, cursor + 1 - batch.firstPosition));
      const found = placeIn(batch, Math.min(...indexes));
      if (found !== undefined) return found;
    }
    const last = batches.at(-1);
    if (last === undefined) return undefined;
    after = endOfBatch(last);
    await slices.pause();
  }
  throw new BrokerError("busy", { details: "the next matching event lies far after the cursor" });
}

function endOfBatch(batch: { readonly firstPosition: Position; readonly count: number }): Position {
  return (batch.firstPosition + batch.count - 1) as Position; // The position of its last event.
}
