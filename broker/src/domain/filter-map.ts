import { LazyMap } from "../lib/lazy-collections.ts";
import { type LevelBound, PatternTrie } from "./pattern-trie.ts";
import { isPattern, type TopicFilter } from "./topic-filter.ts";
import type { TopicName } from "./topic-name.ts";

/** Options of {@link FilterMap.match}. */
interface ValueMatching<T> extends LevelBound {
  readonly onMatch: (value: T, filter: TopicFilter) => void;
}

/**
 * Values by topic filter, found by topic name too. A filter takes memory in proportion to its length, not to its levels. A search by name does not
 * look at other names. Matches like `matchesFilter`.
 */
export class FilterMap<T> {
  /** In the order in which they were added. */
  readonly #values = new LazyMap<TopicFilter, T>();
  /** Created with the first pattern: most sessions have none. */
  #patterns: PatternTrie | undefined;

  get size(): number {
    return this.#values.size;
  }

  get(filter: TopicFilter): T | undefined {
    return this.#values.get(filter);
  }

  keys(): Iterable<TopicFilter> {
    return this.#values.keys();
  }

  values(): Iterable<T> {
    return this.#values.values();
  }

  /** Adds the value of a filter, or replaces it. */
  set(filter: TopicFilter, value: T): void {
    if (isPattern(filter) && !this.#values.has(filter)) {
      this.#patterns ??= new PatternTrie();
      this.#patterns.add(filter);
    }
    this.#values.set(filter, value);
  }

  /** Removes a filter. Returns whether it had a value. */
  delete(filter: TopicFilter): boolean {
    if (!this.#values.delete(filter)) return false;
    if (isPattern(filter)) this.#patterns?.remove(filter);
    return true;
  }

  /** The values of all filters that match. */
  matching(topic: TopicName): readonly T[] {
    const found: T[] = [];
    this.match(topic, { onMatch: (value) => void found.push(value), levelsMax: Infinity });
    return found;
  }

  /**
   * Calls `onMatch` with the value of every filter that matches, until `levelsMax` stops it. Returns how many levels of patterns it looked at:
   * patterns that match only the first levels take time too.
   */
  match(topic: TopicName, { onMatch, levelsMax }: ValueMatching<T>): number {
    const give = (filter: TopicFilter): void => {
      const value = this.#values.get(filter);
      if (value !== undefined) onMatch(value, filter);
    };
    const name: string = topic;
    give(name as TopicFilter); // a name is the filter that matches itself
    return this.#patterns?.match(topic, { onMatch: give, levelsMax }) ?? 0;
  }
}
