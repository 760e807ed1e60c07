import type { BlockRef } from "../../../ports/ledger.ts";
import type { RangeSize } from "./range-size.ts";
import type { StalledReading } from "./stalled-reading.ts";

/** State of one reader: the tracker itself, or a follower. */
export interface Reading {
  readonly size: RangeSize;
  readonly stall: StalledReading;
  readonly ended: AbortSignal;
  /** Set once a reorg removed blocks that were read. `common` is the newest block before them; undefined if it is unknown. */
  fork: { readonly common: BlockRef | undefined } | undefined;
}

/** The state of a reader that wants block `from`. */
export interface ReadingAt extends Reading {
  readonly from: number;
}

/** The lower one of two blocks; undefined if one of them is unknown. */
export function lower(one: BlockRef | undefined, other: BlockRef | undefined): BlockRef | undefined {
  if (one === undefined || other === undefined) return undefined;
  return other.number < one.number ? other : one;
}
