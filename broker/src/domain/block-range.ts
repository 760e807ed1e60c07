/** Blocks by their numbers, both ends included. */
export interface BlockRange {
  readonly from: number;
  readonly to: number;
}
