import { keptFilterBytes, uncountedFiltersMax } from "./limits.ts";

/** Bytes that the filters of one connection count against the memory that connections share. */
export function filterBytes(count: number): number {
  return Math.max(0, count - uncountedFiltersMax) * keptFilterBytes;
}
