import type { EventBatch } from "./event.ts";
import type { Position } from "./position.ts";
import { isPattern, matchesFilter, type TopicFilter } from "./topic-filter.ts";
import { parseTopicName, type TopicName } from "./topic-name.ts";

/** A batch that a reorganisation took off the chain. What it held may be on the chain again, in another place. */
export type VanishedBatch = Omit<EventBatch, "events">;

/** What one reorganisation took, to be asked how much of it a subscription had been given. */
export class VanishedEvents {
  readonly #byTopic = new Map<TopicName, VanishedBatch[]>();

  constructor(batches: readonly VanishedBatch[]) {
    for (const batch of batches) {
      const known = this.#byTopic.get(batch.topic);
      if (known === undefined) this.#byTopic.set(batch.topic, [batch]);
      else known.push(batch);
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

function countIn(batches: readonly VanishedBatch[], position: Position): number {
  let count = 0;
  for (const batch of batches) count += Math.min(batch.count, Math.max(0, position - batch.firstPosition + 1));
  return count;
}
