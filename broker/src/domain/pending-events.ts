import type { Position } from "./position.ts";

/** The events after a position. */
export interface PendingEvents {
  readonly count: number;
  /** Position of the first of them; undefined if there are none. */
  readonly first: Position | undefined;
}

export const nonePending: PendingEvents = { count: 0, first: undefined };
