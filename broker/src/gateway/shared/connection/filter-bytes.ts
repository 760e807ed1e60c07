import { keptFilterBytes, uncountedFiltersMax } from "./limits.ts";

/** Bytes counted for the filters of one connection against the memory that connections share. */
export function filterBytes(count: number): number {
  return Math.max(0, count - uncountedFiltersMax) * keptFilterBytes;
}
