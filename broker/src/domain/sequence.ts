/** Whether so many events from that sequence on pass the highest that a number can carry, 2^53 - 1. The sum itself would be rounded. */
export function isBeyondLastSequence(firstSequence: number, count: number): boolean {
  return count > Number.MAX_SAFE_INTEGER - firstSequence + 1;
}
