import type { EventBatch } from "./event.ts";
import type { Position } from "./position.ts";
import { isPattern, toLevels, type TopicFilter } from "./topic-filter.ts";

/** A batch that a reorg removed. Its events may be on the chain again, at another position. */
export type VanishedBatch = Omit<EventBatch, "events" | "publisher">;

/** A batch, and the number of vanished events before it that the same filter matches. */
interface CountedBatch extends Pick<VanishedBatch, "firstPosition" | "count"> {
  readonly eventsBefore: number;
}

interface TopicNode {
  /** Batches of the topic that ends here. */
  readonly batches: VanishedBatch[];
  readonly below: Map<string, TopicNode>;
}

/** The batches that one reorg removed, to count how many of their events a subscription had received. */
export class VanishedEvents {
  /** A tree of topic levels: thousands of patterns may each match few of thousands of topics. */
  readonly #root = createNode();
  /** The batches of the filter that was counted last, in ascending position. */
  #latest: { readonly filter: TopicFilter; readonly batches: readonly CountedBatch[] } | undefined;

  constructor(batches: readonly VanishedBatch[]) {
    for (const batch of batches) {
      let node = this.#root;
      for (const level of toLevels(batch.topic)) {
        const next = node.below.get(level) ?? createNode();
        node.below.set(level, next);
        node = next;
      }
      node.batches.push(batch);
    }
  }

  /**
   * Number of vanished events that the filter matches, up to and including the position. Count all positions of a filter in a row: only the first one looks
   * for matching topics.
   */
  countUpTo(filter: TopicFilter, position: Position): number {
    if (this.#latest?.filter !== filter) this.#latest = { filter, batches: this.#matching(filter) };
    return countIn(this.#latest.batches, position);
  }

  #matching(filter: TopicFilter): readonly CountedBatch[] {
    const found: VanishedBatch[] = [];
    const [first = "", ...below] = toLevels(filter);
    if (!isPattern(first)) collect(this.#root.below.get(first), below, found);
    else {
      // A leading wildcard does not match a topic that begins with `$` (MQTT 5.0, section 4.7.2).
      const matching = [...this.#root.below].filter(([level]) => !level.startsWith("$"));
      for (const [, node] of matching) collect(node, first === "#" ? ["#"] : below, found);
    }
    let eventsBefore = 0;
    return found
      .toSorted((left, right) => left.firstPosition - right.firstPosition)
      .map(({ firstPosition, count }) => {
        const counted = { firstPosition, count, eventsBefore };
        eventsBefore += count;
        return counted;
      });
  }
}

/** Subscriptions in the order in which {@link VanishedEvents.countUpTo} should count them. */
export function byFilter<T extends { readonly filter: string }>(subscriptions: readonly T[]): readonly T[] {
  return subscriptions.toSorted((left, right) =>
    left.filter < right.filter ? -1 : Number(left.filter > right.filter),
  );
}

function createNode(): TopicNode {
  return { batches: [], below: new Map() };
}

/** Adds the batches at and below a node that the remaining levels of a filter match. */
function collect(node: TopicNode | undefined, [level, ...rest]: readonly string[], found: VanishedBatch[]): void {
  if (node === undefined) return;
  if (level === undefined || level === "#") for (const batch of node.batches) found.push(batch);
  if (level === undefined) return;
  if (level === "#") for (const child of node.below.values()) collect(child, ["#"], found);
  else if (level === "+") for (const child of node.below.values()) collect(child, rest, found);
  else collect(node.below.get(level), rest, found);
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
