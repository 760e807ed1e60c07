import type { TopicName } from "./topic-name.ts";

/** Names from `from` on that come before `before`, in the order of their characters' codes. */
export interface NameRange {
  readonly from: string;
  readonly before: string;
}

export function isInRanges(name: TopicName, ranges: readonly NameRange[]): boolean {
  return ranges.some(({ from, before }) => name >= from && name < before);
}
