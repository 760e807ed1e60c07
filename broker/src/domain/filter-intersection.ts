import { type TopicFilter, toLevels } from "./topic-filter.ts";

/** The filter that matches exactly the topics that both filters match; undefined if there are none. It may be too long for `parseTopicFilter`. */
export function intersectFilters(left: TopicFilter, right: TopicFilter): TopicFilter | undefined {
  // A wildcard on the first level does not match topics that begin with `$` (MQTT 5.0, section 4.7.2).
  if (left.startsWith("$") !== right.startsWith("$")) return undefined;
  const levels = intersectLevels(toLevels(left), toLevels(right));
  return levels && (levels.join("/") as TopicFilter); // A valid filter: each wildcard comes from the same level of a given filter.
}

function intersectLevels(left: readonly string[], right: readonly string[]): readonly string[] | undefined {
  const both: string[] = [];
  for (let at = 0; at < Math.max(left.length, right.length); at += 1) {
    const [ofLeft, ofRight] = [left[at], right[at]];
    if (ofLeft === "#") return [...both, ...right.slice(at)];
    if (ofRight === "#") return [...both, ...left.slice(at)];
    const level = ofLeft === "+" ? ofRight : ofLeft;
    if (level === undefined || ofRight === undefined || (ofRight !== "+" && ofRight !== level)) return undefined;
    both.push(level);
  }
  return both;
}
