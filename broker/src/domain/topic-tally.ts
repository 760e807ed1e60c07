import type { PendingEvents } from "./pending-events.ts";
import { minOf, type Position } from "./position.ts";
import { toLevels, type TopicFilter } from "./topic-filter.ts";
import type { TopicName } from "./topic-name.ts";

/** Events that were added so far. */
class Sum implements PendingEvents {
  count = 0;
  first: Position | undefined;

  add({ count, first }: PendingEvents): void {
    this.count += count;
    if (first !== undefined) this.first = this.first === undefined ? first : minOf(this.first, first);
  }
}

interface TallyNode {
  /** Events of the topic that ends here. */
  readonly own: Sum;
  /** Events of the topic that ends here and of every topic below it. */
  readonly total: Sum;
  readonly children: Map<string, TallyNode>;
}

const createNode = (): TallyNode => ({ own: new Sum(), total: new Sum(), children: new Map() });

/**
 * Counts events by topic, and sums the counts for a filter. A `+`, and a `#` on the first level, visit every child of their node; any other `#` costs one
 * step. Matches like `matchesFilter`.
 */
export class TopicTally {
  readonly #root = createNode();

  add(topic: TopicName, events: PendingEvents): void {
    let node = this.#root;
    node.total.add(events);
    for (const level of toLevels(topic)) {
      const next = node.children.get(level) ?? createNode();
      node.children.set(level, next);
      node = next;
      node.total.add(events);
    }
    node.own.add(events);
  }

  /** The events of every topic that the filter matches. */
  sum(filter: TopicFilter): PendingEvents {
    const [first = "", ...below] = toLevels(filter);
    const sum = new Sum();
    if (first !== "#" && first !== "+") addBelow(sum, this.#root.children.get(first), below);
    else {
      for (const [level, node] of this.#root.children) {
        // A wildcard on the first level does not match topics that begin with `$` (MQTT 5.0, section 4.7.2).
        if (level.startsWith("$")) continue;
        if (first === "#") sum.add(node.total);
        else addBelow(sum, node, below);
      }
    }
    return sum;
  }
}

/** Adds to `sum` the events below a node that the remaining levels of a filter match. */
function addBelow(sum: Sum, node: TallyNode | undefined, [level, ...below]: readonly string[]): void {
  if (node === undefined) return;
  if (level === undefined) sum.add(node.own);
  else if (level === "#") sum.add(node.total);
  else if (level === "+") for (const child of node.children.values()) addBelow(sum, child, below);
  else addBelow(sum, node.children.get(level), below);
}
