/** Whether `count` events from that sequence on would exceed 2^53 - 1, the largest safe integer. Computing the sum itself would round it. */
export function isBeyondLastSequence(firstSequence: number, count: number): boolean {
  return count > Number.MAX_SAFE_INTEGER - firstSequence + 1;
}
