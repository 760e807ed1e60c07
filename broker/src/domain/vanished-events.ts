import type { EventBatch } from "./event.ts";
import type { Position } from "./position.ts";
import { isPattern, toLevels, type TopicFilter } from "./topic-filter.ts";

/** A batch that a reorg removed. Its events may be on the chain again, at another position. */
export type VanishedBatch = Omit<EventBatch, "events" | "publisher">;

/** The events of a batch: all that counting needs, since a reorg may remove millions of batches. */
type Span = Pick<VanishedBatch, "firstPosition" | "count">;

/** The events of a batch, and the number of vanished events before it that the same filter matches. */
interface CountedSpan extends Span {
  readonly eventsBefore: number;
}

interface TopicNode {
  /** Batches of the topic that ends here. */
  readonly spans: Span[];
  readonly below: Map<string, TopicNode>;
}

/** The events that one reorg removed, to count how many of them a subscription had received. */
export class VanishedEvents {
  /** A tree of topic levels: thousands of patterns may each match few of thousands of topics. */
  readonly #root = createNode();
  /** The batches of the filter that was counted last, in ascending position. */
  #latest: { readonly filter: TopicFilter; readonly spans: readonly CountedSpan[] } | undefined;

  /** Adds the events of further batches. */
  add(batches: readonly VanishedBatch[]): void {
    this.#latest = undefined;
    for (const { topic, firstPosition, count } of batches) {
      let node = this.#root;
      for (const level of toLevels(topic)) {
        const next = node.below.get(level) ?? createNode();
        node.below.set(level, next);
        node = next;
      }
      node.spans.push({ firstPosition, count });
    }
  }

  /**
   * Number of vanished events that the filter matches, up to and including the position. Count all positions of a filter one after another: only the first one looks
   * for matching topics.
   */
  countUpTo(filter: TopicFilter, position: Position): number {
    if (this.#latest?.filter !== filter) this.#latest = { filter, spans: this.#matching(filter) };
    return countIn(this.#latest.spans, position);
  }

  #matching(filter: TopicFilter): readonly CountedSpan[] {
    const found: Span[] = [];
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
  return { spans: [], below: new Map() };
}

/** Adds the batches at and below a node that the remaining levels of a filter match. */
function collect(node: TopicNode | undefined, [level, ...rest]: readonly string[], found: Span[]): void {
  if (node === undefined) return;
  if (level === undefined || level === "#") for (const span of node.spans) found.push(span);
  if (level === undefined) return;
  if (level === "#") for (const child of node.below.values()) collect(child, ["#"], found);
  else if (level === "+") for (const child of node.below.values()) collect(child, rest, found);
  else collect(node.below.get(level), rest, found);
}

/** Finds the last batch that begins at or before the position by binary search: thousands of subscriptions may ask about thousands of batches. */
function countIn(spans: readonly CountedSpan[], position: Position): number {
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((spans[middle]?.firstPosition ?? 0) <= position) low = middle + 1;
    else high = middle;
  }
  const last = spans[low - 1];
  return last === undefined ? 0 : last.eventsBefore + Math.min(last.count, position - last.firstPosition + 1);
}
