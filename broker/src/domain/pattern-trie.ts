import { endOfLevel, type FilterPart, type TopicFilter, type TopicWalk, walkLevels } from "./topic-filter.ts";
import type { TopicName } from "./topic-name.ts";

/** A run of levels of one or more patterns: the characters of `text` from `start` to before `end`. `text` is a pattern with this run, perhaps a removed one. */
interface Branch extends FilterPart {
  text: string;
  end: number;
  /** The pattern that ends here; undefined if none does. */
  pattern: TopicFilter | undefined;
  /** The branches below, by their first level; undefined if there are none. */
  below: Map<string, Branch> | undefined;
}

/** Limit for the work of one match. */
export interface LevelBound {
  /** Matching compares no further branch after this many levels. The last branch may exceed the limit, by fewer levels than the topic has. */
  readonly levelsMax: number;
}

/** Options of {@link PatternTrie.match}. */
interface Matching extends LevelBound {
  readonly onMatch: (pattern: TopicFilter) => void;
}

interface Search extends TopicWalk, Matching {}

interface Place {
  readonly walk: Search;
  readonly at: number;
}

/**
 * Finds the patterns that match a topic, by the rules of `matchesFilter`. A branch ends only where a pattern ends or patterns differ, so a pattern adds at most
 * two branches, however many levels it has. Adding and removing take time in proportion to the length of the pattern.
 */
export class PatternTrie {
  readonly #root: Branch = { text: "", start: 0, end: 0, pattern: undefined, below: undefined };

  /** Adds a pattern. The trie must not contain it already. */
  add(pattern: TopicFilter): void {
    let branch = this.#root;
    for (let start = 0; ; ) {
      const level = levelAt(pattern, start);
      branch.below ??= new Map();
      const next = branch.below.get(level);
      if (next === undefined) {
        branch.below.set(level, { text: pattern, start, end: pattern.length, pattern, below: undefined });
        return;
      }
      const end = endOfShared(next, pattern);
      if (end < next.end) split(next, end);
      if (end === pattern.length) {
        next.pattern = pattern;
        return;
      }
      branch = next;
      start = end + 1;
    }
  }

  /** Removes a pattern. @throws Error if it is not in the trie. */
  remove(pattern: TopicFilter): void {
    let above = this.#root;
    for (let start = 0; ; ) {
      const branch = above.below?.get(levelAt(pattern, start));
      if (branch === undefined) throw new Error(`${pattern} is not in the trie`);
      if (branch.end === pattern.length) {
        this.#clear(branch, above);
        return;
      }
      start = branch.end + 1;
      above = branch;
    }
  }

  /** Calls `onMatch` with every pattern that matches, until `levelsMax` stops it. Returns how many levels of patterns it looked at. */
  match(topic: TopicName, { onMatch, levelsMax }: Matching): number {
    const walk = { topic, levels: 0, onMatch, levelsMax };
    const place = { walk, at: 0 };
    // A leading wildcard does not match a topic that begins with `$` (MQTT 5.0, section 4.7.2).
    if (topic.startsWith("$")) follow(this.#root.below?.get(levelAt(topic, 0)), place);
    else visit(this.#root, place);
    return walk.levels;
  }

  #clear(branch: Branch, above: Branch): void {
    branch.pattern = undefined;
    if (branch.below !== undefined) {
      joinWithOnlyBelow(branch);
      return;
    }
    above.below?.delete(levelAt(branch.text, branch.start));
    if (above.below?.size === 0) above.below = undefined;
    if (above !== this.#root) joinWithOnlyBelow(above);
  }
}

function visit({ below }: Branch, place: Place): void {
  if (below === undefined) return;
  const { walk, at } = place;
  follow(below.get("#"), place);
  if (at > walk.topic.length) return;
  follow(below.get(levelAt(walk.topic, at)), place);
  follow(below.get("+"), place);
}

function follow(branch: Branch | undefined, place: Place): void {
  const { walk } = place;
  if (branch === undefined || walk.levels >= walk.levelsMax) return;
  const at = walkLevels(branch, place);
  if (at === -1) return;
  if (at > walk.topic.length && branch.pattern !== undefined) walk.onMatch(branch.pattern);
  visit(branch, { walk, at });
}

function levelAt(text: string, start: number): string {
  return text.slice(start, endOfLevel(text, start));
}

/** Returns the offset at which the last level ends that the branch and the pattern share. They share all levels up to the branch's first. */
function endOfShared({ text, start, end }: Branch, pattern: string): number {
  for (let from = start; ; ) {
    const to = endOfLevel(text, from);
    if (levelAt(pattern, from) !== text.slice(from, to)) return from - 1;
    if (to === end || to === pattern.length) return to;
    from = to + 1;
  }
}

/** Ends the branch at offset `at`; its other levels go into a branch below. */
function split(branch: Branch, at: number): void {
  const { text, end, pattern, below } = branch;
  const lower = { text, start: at + 1, end, pattern, below };
  branch.end = at;
  branch.pattern = undefined;
  branch.below = new Map([[levelAt(text, lower.start), lower]]);
}

/** Joins a branch with the branch below it if there is only one, and no pattern ends between them. */
function joinWithOnlyBelow(branch: Branch): void {
  const [lower, other] = branch.below?.values() ?? [];
  if (branch.pattern !== undefined || lower === undefined || other !== undefined) return;
  branch.text = lower.text;
  branch.end = lower.end;
  branch.pattern = lower.pattern;
  branch.below = lower.below;
}
