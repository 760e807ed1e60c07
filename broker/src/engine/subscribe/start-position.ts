import { isBrokerError } from "@stele/wire";
import { endOfBlock, positionZero } from "../../domain/position.ts";
import type { StartPosition } from "../broker.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { Group } from "../group.ts";
import { illegalPlace } from "../illegal-place.ts";
import type { EventQuery } from "../query/event-query.ts";

export interface StartPositionOptions {
  readonly events: EventQuery;
  /** Whether the caller may name events of a topic. Undefined if it may name any event. */
  readonly mayFind?: ((topic: TopicName) => boolean) | undefined;
}

/**
 * The position after which a new subscription begins: `OFFSET_LAST` (also when left out) is after the newest block of the index,
 * `OFFSET_FIRST` before the first, an eventId after that event.
 * @throws BrokerError 100300 to 100304 for an eventId, as getEvent does; 200205 as {@link Group.findLiveHead} does.
 */
export async function findStartPosition(
  { events, mayFind }: StartPositionOptions,
  group: Group,
  offset: string | undefined,
): Promise<StartPosition> {
  const head = await group.findLiveHead();
  const generation = head?.generation ?? 0;
  if (offset === "OFFSET_FIRST") return { position: positionZero, generation };
  if (offset === undefined || offset === "OFFSET_LAST")
    return { position: endOfBlock(Math.max(0, head?.blockNumber ?? 0)), generation };
  try {
    return { position: (await events.getPlace(group, offset, { mayFind })).position, generation };
  } catch (error) {
    throw isBrokerError(error, "eventIdIllegal") ? illegalPlace(offset) : error;
  }
}
