import { toLevels, type TopicFilter } from "./topic-filter.ts";
import type { TopicName } from "./topic-name.ts";

interface TrieNode<T> {
  readonly children: Map<string, TrieNode<T>>;
  readonly values: Set<T>;
}

const createNode = <T>(): TrieNode<T> => ({ children: new Map(), values: new Set() });

/**
 * Values under topic filters, found by topic name. The time of a lookup grows with the levels of the name, not with the number of filters. Matches
 * like `matchesFilter`.
 */
export class TopicTrie<T> {
  readonly #root: TrieNode<T> = createNode();

  /** Whether the trie contains no value. */
  get isEmpty(): boolean {
    return this.#root.values.size === 0 && this.#root.children.size === 0;
  }

  add(filter: TopicFilter, value: T): void {
    let node = this.#root;
    for (const level of toLevels(filter)) {
      const next = node.children.get(level) ?? createNode<T>();
      node.children.set(level, next);
      node = next;
    }
    node.values.add(value);
  }

  /** Removes a value; does nothing if it is missing. */
  remove(filter: TopicFilter, value: T): void {
    removeFrom(this.#root, toLevels(filter), value);
  }

  /** Calls back with every value whose filter matches, once per matching filter. */
  match(topic: TopicName, onMatch: (value: T) => void): void {
    visit(this.#root, { levels: toLevels(topic), depth: 0, wildcards: !topic.startsWith("$") }, onMatch);
  }
}

function removeFrom<T>(node: TrieNode<T>, levels: readonly string[], value: T): void {
  const [level, ...rest] = levels;
  if (level === undefined) {
    node.values.delete(value);
    return;
  }
  const child = node.children.get(level);
  if (child === undefined) return;
  removeFrom(child, rest, value);
  if (child.values.size === 0 && child.children.size === 0) node.children.delete(level);
}

interface Place {
  readonly levels: readonly string[];
  readonly depth: number;
  /** False on the first level of a topic that begins with `$` (MQTT 5.0, section 4.7.2). */
  readonly wildcards: boolean;
}

function visit<T>(node: TrieNode<T>, place: Place, onMatch: (value: T) => void): void {
  if (place.wildcards) visitValues(node.children.get("#"), onMatch);
  const level = place.levels[place.depth];
  if (level === undefined) {
    visitValues(node, onMatch);
    return;
  }
  const below = { levels: place.levels, depth: place.depth + 1, wildcards: true };
  const exact = node.children.get(level);
  if (exact !== undefined) visit(exact, below, onMatch);
  const any = place.wildcards ? node.children.get("+") : undefined;
  if (any !== undefined) visit(any, below, onMatch);
}

function visitValues<T>(node: TrieNode<T> | undefined, onMatch: (value: T) => void): void {
  if (node === undefined) return;
  for (const value of node.values) onMatch(value);
}
