import { isPattern, matchesFilter, type TopicFilter, toLevels } from "./topic-filter.ts";
import type { TopicName } from "./topic-name.ts";

/**
 * Whether `outer` matches every topic that `inner` matches (MQTT 5.0, section 4.7). Ignores the maximum length of topic
 * names: a topic that is too long may make the answer false. Every filter covers a filter that matches no topic.
 */
export function coversFilter(outer: TopicFilter, inner: TopicFilter): boolean {
  if (matchesNothing(inner)) return true;
  if (matchesNothing(outer)) return false;
  if (hasLeadingWildcard(outer) ? inner.startsWith("$") : outer[0] !== inner[0]) return false;
  if (isTopic(inner)) return matchesFilter(outer, inner);
  return coversLevels(toNormalLevels(outer), toNormalLevels(inner));
}

/** Whether some topic matches both filters. Ignores the maximum length of topic names: the only such topic may be too long. */
export function overlapsFilter(one: TopicFilter, other: TopicFilter): boolean {
  if (matchesNothing(one) || matchesNothing(other)) return false;
  if ((hasLeadingWildcard(one) && other.startsWith("$")) || (hasLeadingWildcard(other) && one.startsWith("$")))
    return false;
  if (isTopic(other)) return matchesFilter(one, other);
  if (isTopic(one)) return matchesFilter(other, one);
  return overlapsLevels(toNormalLevels(one), toNormalLevels(other));
}

/** A filter that ends in `/` matches no topic, since no topic name ends in `/`. */
function matchesNothing(filter: TopicFilter): boolean {
  return filter.endsWith("/");
}

/** Most filters in a check of rights are topics. `matchesFilter` takes a third of the time of a comparison of two patterns. */
function isTopic(filter: TopicFilter): filter is TopicFilter & TopicName {
  return !isPattern(filter);
}

/** A filter with a leading wildcard matches no topic that begins with `$` (MQTT 5.0, section 4.7.2). */
function hasLeadingWildcard(filter: TopicFilter): boolean {
  return filter.startsWith("+") || filter.startsWith("#");
}

/**
 * The levels of a filter. A filter such as `a/#` also matches its parent, `a`. But the parent of `#` or `a//#` is not a valid topic name. For those filters
 * this returns the levels of `+/#` and `a//+/#`, which match the same topics.
 */
function toNormalLevels(filter: TopicFilter): readonly string[] {
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
