import type { Pauses } from "../../lib/time-slices.ts";

/** The pauses of the caller. */
export interface Paused {
  readonly slices: Pauses;
}
