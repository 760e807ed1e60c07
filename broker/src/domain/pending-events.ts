import type { Position } from "./position.ts";

/** Events after a place. */
export interface PendingEvents {
  readonly count: number;
  /** Position of the first of them; undefined if there are none. */
  readonly first: Position | undefined;
}

export const nonePending: PendingEvents = { count: 0, first: undefined };
