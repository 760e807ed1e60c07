/** Whether `count` events from `firstSequence` on would exceed 2^53 - 1, the largest safe integer. The sum itself could be rounded. */
export function isBeyondLastSequence(firstSequence: number, count: number): boolean {
  return count > Number.MAX_SAFE_INTEGER - firstSequence + 1;
}
