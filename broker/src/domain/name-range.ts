import type { TopicName } from "./topic-name.ts";

/** Names from `from` up to, but not including, `before`, in the order of their character codes. */
export interface NameRange {
  readonly from: string;
  readonly before: string;
}

export function isInRanges(name: TopicName, ranges: readonly NameRange[]): boolean {
  return ranges.some(({ from, before }) => name >= from && name < before);
}
