import { toLevels, type TopicFilter } from "./topic-filter.ts";
import type { TopicName } from "./topic-name.ts";

interface TallyNode {
  /** Count of the topic that ends here. */
  own: number;
  /** Count of that topic and every topic below. */
  total: number;
  readonly children: Map<string, TallyNode>;
}

const createNode = (): TallyNode => ({ own: 0, total: 0, children: new Map() });

/** Counts by topic, summed up for filters. A sum visits the levels that `+` leaves open, and nothing below a `#`. Matches like `matchesFilter`. */
export class TopicTally {
  readonly #root = createNode();

  add(topic: TopicName, count: number): void {
    let node = this.#root;
    node.total += count;
    for (const level of toLevels(topic)) {
      const next = node.children.get(level) ?? createNode();
      node.children.set(level, next);
      node = next;
      node.total += count;
    }
    node.own += count;
  }

  /** The sum over every topic that the filter matches. */
  sum(filter: TopicFilter): number {
    const [first = "", ...below] = toLevels(filter);
    if (first !== "#" && first !== "+") return sumBelow(this.#root.children.get(first), below, 0);
    let sum = 0;
    for (const [level, node] of this.#root.children) {
      // A wildcard on the first level does not match topics that begin with `$` (MQTT 5.0, section 4.7.2).
      if (!level.startsWith("$")) sum += first === "#" ? node.total : sumBelow(node, below, 0);
    }
    return sum;
  }
}

function sumBelow(node: TallyNode | undefined, levels: readonly string[], depth: number): number {
  if (node === undefined) return 0;
  const level = levels[depth];
  if (level === undefined) return node.own;
  if (level === "#") return node.total;
  if (level !== "+") return sumBelow(node.children.get(level), levels, depth + 1);
  let sum = 0;
  for (const child of node.children.values()) sum += sumBelow(child, levels, depth + 1);
  return sum;
}
