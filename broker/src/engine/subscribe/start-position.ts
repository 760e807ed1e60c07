import { endOfBlock, type Position, positionZero } from "../../domain/position.ts";
import type { Group } from "../group.ts";
import type { EventQuery } from "../query/event-query.ts";

/**
 * The position after which a new subscription is fed: `OFFSET_LAST` (also when left out) is after the newest indexed event,
 * `OFFSET_FIRST` before the first, an eventId after that event.
 * @throws BrokerError 100302, 100303, 100304 as for getEvent.
 */
export async function findStartPosition(
  events: EventQuery,
  group: Group,
  offset: string | undefined,
): Promise<Position> {
  if (offset === "OFFSET_FIRST") return positionZero;
  if (offset === undefined || offset === "OFFSET_LAST") return endOfBlock(Math.max(0, group.progress.blockNumber));
  return (await events.get(group, offset)).position;
}
