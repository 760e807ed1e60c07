import { isPattern, type TopicFilter, toLevels } from "./topic-filter.ts";

/**
 * Whether `outer` matches every topic that `inner` matches (MQTT 5.0, section 4.7). Exact for valid topic names, except that it ignores their
 * maximum length. Every filter covers a filter that matches no topic.
 */
export function coversFilter(outer: TopicFilter, inner: TopicFilter): boolean {
  if (matchesNothing(inner)) return true;
  if (matchesNothing(outer)) return false;
  if (startsWild(outer) ? inner.startsWith("$") : outer[0] !== inner[0]) return false;
  return coversLevels(normalised(outer), normalised(inner));
}

/** Whether some topic matches both filters; as exact as {@link coversFilter}. */
export function overlapsFilter(one: TopicFilter, other: TopicFilter): boolean {
  if (matchesNothing(one) || matchesNothing(other)) return false;
  if ((startsWild(one) && other.startsWith("$")) || (startsWild(other) && one.startsWith("$"))) return false;
  return overlapsLevels(normalised(one), normalised(other));
}

/** No topic name ends in an empty level. */
function matchesNothing(filter: TopicFilter): boolean {
  return filter.endsWith("/");
}

/** A filter with a leading wildcard matches no topic that begins with `$` (MQTT 5.0, section 4.7.2). */
function startsWild(filter: TopicFilter): boolean {
  return filter.startsWith("+") || filter.startsWith("#");
}

/**
 * The levels of a filter. Replaces a `#` whose parent is not a topic name by `+/#`, which matches the same topics: `#` also matches its parent, but `+/#`
 * has no parent of that kind.
 */
function normalised(filter: TopicFilter): readonly string[] {
  const levels = toLevels(filter);
  if (!isPattern(filter) || levels.at(-1) !== "#") return levels;
  const parent = levels.slice(0, -1);
  const hasParent = parent.length > 0 && parent.at(-1) !== "";
  return hasParent ? levels : [...parent, "+", "#"];
}

function coversLevels(outer: readonly string[], inner: readonly string[]): boolean {
  for (const [index, level] of outer.entries()) {
    if (level === "#") return true;
    const other = inner[index];
    if (other === undefined || other === "#") return false;
    if (level !== "+" && level !== other) return false;
  }
  return outer.length === inner.length;
}

function overlapsLevels(one: readonly string[], other: readonly string[]): boolean {
  for (let index = 0; ; index += 1) {
    const [left, right] = [one[index], other[index]];
    if (left === "#" || right === "#") return true;
    if (left === undefined || right === undefined) return left === right;
    if (left !== "+" && right !== "+" && left !== right) return false;
  }
}
