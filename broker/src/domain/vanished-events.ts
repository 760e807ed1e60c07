import type { EventBatch } from "./event.ts";
import type { Position } from "./position.ts";
import { isPattern, matchesFilter, type TopicFilter } from "./topic-filter.ts";
import { parseTopicName, type TopicName } from "./topic-name.ts";

/** A batch that a reorganisation took off the chain. What it held may be on the chain again, in another place. */
export type VanishedBatch = Omit<EventBatch, "events" | "publisher">;

/** A batch, and how many events of its topic vanished before it. */
interface CountedBatch extends Pick<VanishedBatch, "firstPosition" | "count"> {
  readonly eventsBefore: number;
}

/** What one reorganisation took, to be asked how much of it a subscription had been given. Its batches ascend. */
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

  /** Events that the filter matches, up to and with the position. */
  countUpTo(filter: TopicFilter, position: Position): number {
    if (!isPattern(filter)) return countIn(this.#byTopic.get(parseTopicName(filter)) ?? [], position);
    let count = 0;
    for (const [topic, batches] of this.#byTopic) {
      if (matchesFilter(filter, topic)) count += countIn(batches, position);
    }
    return count;
  }
}

/** Looks for the last batch that begins by the position: thousands of subscriptions may ask about thousands of batches. */
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
