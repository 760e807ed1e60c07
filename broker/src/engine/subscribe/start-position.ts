import { endOfBlock, type Position, positionZero } from "../../domain/position.ts";
import type { Group } from "../group.ts";
import type { EventQuery } from "../query/event-query.ts";

/** Where a new subscription begins. */
export interface StartPosition {
  readonly position: Position;
  /** Generation of the index before the position was found; after a later rollback, the position may be of a removed event. */
  readonly generation: number;
}

export interface StartPositionOptions {
  readonly events: EventQuery;
}

/**
 * The position after which a new subscription is fed: `OFFSET_LAST` (also when left out) is after the newest event in the store,
 * `OFFSET_FIRST` before the first, an eventId after that event.
 * @throws BrokerError 100302, 100303, 100304 as for getEvent.
 */
export async function findStartPosition(
  { events }: StartPositionOptions,
  group: Group,
  offset: string | undefined,
): Promise<StartPosition> {
  const head = await group.findHead();
  const generation = head?.generation ?? 0;
  if (offset === "OFFSET_FIRST") return { position: positionZero, generation };
  if (offset === undefined || offset === "OFFSET_LAST")
    return { position: endOfBlock(Math.max(0, head?.blockNumber ?? 0)), generation };
  return { position: (await events.get(group, offset)).position, generation };
}
