import { endOfLevel, type FilterPart, type TopicFilter, type TopicPlace, walkLevels } from "./topic-filter.ts";
import type { TopicName } from "./topic-name.ts";

/** One or more levels that patterns share. The text is one of a pattern that has or had them. */
interface Branch extends FilterPart {
  text: string;
  end: number;
  /** The pattern that ends here; undefined if none does. */
  pattern: TopicFilter | undefined;
  /** By the first level of each; undefined for none. */
  below: Map<string, Branch> | undefined;
}

type OnMatch = (pattern: TopicFilter) => void;

/**
 * Filters with wildcards, found by topic name. Levels that no other pattern shares are one branch, so a pattern adds at most two branches, however
 * many levels it has. Adding and removing take time in proportion to the length of the pattern. Matches like `matchesFilter`.
 */
export class PatternTrie {
  readonly #root: Branch = { text: "", start: 0, end: 0, pattern: undefined, below: undefined };

  /** Adds a pattern that is not there. */
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

  /** Removes a pattern that is there. */
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

  /** Calls back with every pattern that matches. Answers how many branches it looked at: some lead to no match. */
  match(topic: TopicName, onMatch: OnMatch): number {
    const place = { topic, at: 0 };
    // A leading wildcard does not match a topic that begins with `$` (MQTT 5.0, section 4.7.2).
    if (topic.startsWith("$")) return follow(this.#root.below?.get(levelAt(topic, 0)), place, onMatch);
    return visit(this.#root, place, onMatch);
  }

  #clear(branch: Branch, above: Branch): void {
    branch.pattern = undefined;
    if (branch.below !== undefined) {
      joinOnly(branch);
      return;
    }
    above.below?.delete(levelAt(branch.text, branch.start));
    if (above.below?.size === 0) above.below = undefined;
    if (above !== this.#root) joinOnly(above);
  }
}

/** Answers how many branches it looked at, as {@link follow} does. */
function visit({ below }: Branch, place: TopicPlace, onMatch: OnMatch): number {
  if (below === undefined) return 0;
  const { topic, at } = place;
  const atAny = follow(below.get("#"), place, onMatch);
  if (at > topic.length) return atAny;
  return atAny + follow(below.get(levelAt(topic, at)), place, onMatch) + follow(below.get("+"), place, onMatch);
}

function follow(branch: Branch | undefined, place: TopicPlace, onMatch: OnMatch): number {
  if (branch === undefined) return 0;
  const { topic } = place;
  const at = walkLevels(branch, place);
  if (at === -1) return 1;
  if (at > topic.length && branch.pattern !== undefined) onMatch(branch.pattern);
  return 1 + visit(branch, { topic, at }, onMatch);
}

function levelAt(text: string, start: number): string {
  return text.slice(start, endOfLevel(text, start));
}

/** Where the last level ends that the branch shares with the pattern. The levels before the branch and its first one are the same. */
function endOfShared({ text, start, end }: Branch, pattern: string): number {
  for (let from = start; ; ) {
    const to = endOfLevel(text, from);
    if (levelAt(pattern, from) !== text.slice(from, to)) return from - 1;
    if (to === end || to === pattern.length) return to;
    from = to + 1;
  }
}

/** Ends the branch after a level; the others go into a branch below. */
function split(branch: Branch, at: number): void {
  const { text, end, pattern, below } = branch;
  const lower = { text, start: at + 1, end, pattern, below };
  branch.end = at;
  branch.pattern = undefined;
  branch.below = new Map([[levelAt(text, lower.start), lower]]);
}

/** Joins a branch at which no pattern ends with the one below, if that is the only one. */
function joinOnly(branch: Branch): void {
  const [lower, other] = branch.below?.values() ?? [];
  if (branch.pattern !== undefined || lower === undefined || other !== undefined) return;
  branch.text = lower.text;
  branch.end = lower.end;
  branch.pattern = lower.pattern;
  branch.below = lower.below;
}
