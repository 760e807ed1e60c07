import type { EventBatch } from "./event.ts";
import type { Position } from "./position.ts";
import { isPattern, matchesFilter, type TopicFilter } from "./topic-filter.ts";
import { parseTopicName, type TopicName } from "./topic-name.ts";

/** A batch that a reorg removed. Its events may be on the chain again, at another position. */
export type VanishedBatch = Omit<EventBatch, "events" | "publisher">;

/** A batch, and the number of events of its topic that vanished before it. */
interface CountedBatch extends Pick<VanishedBatch, "firstPosition" | "count"> {
  readonly eventsBefore: number;
}

/** The batches that one reorg removed, in ascending position, to count how many of their events a subscription had received. */
export class VanishedEvents {
  readonly #byTopic = new Map<TopicName, CountedBatch[]>();

  constructor(batches: readonly VanishedBatch[]) {
    for (const { topic, firstPosition, count } of batches) {
      const known = this.#byTopic.get(topic) ?? [];
      const last = known.at(-1);
      const eventsBefore = last === undefined ? 0 : last.eventsBefore + last.count;
      known.push({ firstPosition, count, eventsBefore });
      this.#byTopic.set(topic, known);
    }
  }

  /** Number of vanished events that the filter matches, up to and including the position. */
  countUpTo(filter: TopicFilter, position: Position): number {
    if (!isPattern(filter)) return countIn(this.#byTopic.get(parseTopicName(filter)) ?? [], position);
    let count = 0;
    for (const [topic, batches] of this.#byTopic) {
      if (matchesFilter(filter, topic)) count += countIn(batches, position);
    }
    return count;
  }
}

/** Finds the last batch that begins at or before the position by binary search: thousands of subscriptions may ask about thousands of batches. */
function countIn(batches: readonly CountedBatch[], position: Position): number {
  let low = 0;
  let high = batches.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((batches[middle]?.firstPosition ?? 0) <= position) low = middle + 1;
    else high = middle;
  }
  const last = batches[low - 1];
  return last === undefined ? 0 : last.eventsBefore + Math.min(last.count, position - last.firstPosition + 1);
}
