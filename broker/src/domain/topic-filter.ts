import { BrokerError, quote } from "@stele/wire";
import { checkTopicText, parseTopicName, type TopicName } from "./topic-name.ts";

/** A topic name, or a pattern with `+` and `#`, that passed {@link parseTopicFilter}. */
export type TopicFilter = string & { readonly __brand: "TopicFilter" };

/** Splits a name or filter into its levels; an empty level is a level (MQTT 5.0, section 4.7.1). */
export function toLevels(text: string): readonly string[] {
  return text.split("/");
}

/** Whether the filter has a wildcard, so that it can match several topics. */
export function isPattern(filter: string): boolean {
  return filter.includes("+") || filter.includes("#");
}

/**
 * Checks a filter. Without a wildcard it must be a topic name. With one, `+` must fill its level and `#` must fill the last (MQTT 5.0, sections
 * 4.7.1.2 and 4.7.1.3).
 * @throws BrokerError 100103, 100102, 100106 as for a name; 100109 for a misplaced wildcard.
 */
export function parseTopicFilter(text: string): TopicFilter {
  if (!isPattern(text)) {
    const name: string = parseTopicName(text);
    return name as TopicFilter; // A name is the filter that matches itself.
  }
  checkTopicText(text);
  const levels = toLevels(text);
  levels.forEach((level, index) => {
    checkLevel(level, { isLast: index === levels.length - 1, text });
  });
  return text as TopicFilter; // Checked above.
}

/** Whether {@link parseTopicFilter} accepts the text. */
export function isTopicFilter(text: string): text is TopicFilter {
  try {
    parseTopicFilter(text);
    return true;
  } catch {
    return false;
  }
}

function checkLevel(level: string, place: { readonly isLast: boolean; readonly text: string }): void {
  if (isPattern(level) && level.length > 1) {
    throw new BrokerError("topicPatternInvalid", { details: `a wildcard must fill its level in ${quote(place.text)}` });
  }
  if (level === "#" && !place.isLast) {
    throw new BrokerError("topicPatternInvalid", { details: `"#" must be the last level of ${quote(place.text)}` });
  }
}

/**
 * Whether a filter matches a topic, by MQTT's rules: `+` matches one level, also an empty one; `#` matches the parent and everything below; a
 * leading wildcard does not match a topic that begins with `$` (MQTT 5.0, section 4.7.2).
 */
export function matchesFilter(filter: TopicFilter, topic: TopicName): boolean {
  if (!isPattern(filter)) return (filter as string) === topic; // Two brands of the same text.
  if (topic.startsWith("$") && !filter.startsWith("$")) return false;
  return (
    walkLevels({ text: filter, start: 0, end: filter.length }, { walk: { topic, levels: 0 }, at: 0 }) > topic.length
  );
}

/** Whole levels of a filter: the characters from `start` to before `end`. */
export interface FilterPart {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/** A topic, and how many levels of filters were compared with it. */
export interface TopicWalk {
  readonly topic: TopicName;
  levels: number;
}

/** A place in a topic. `at` is the offset of a level; after the last level, it is beyond the end of the topic. */
export interface LevelPlace {
  readonly walk: TopicWalk;
  readonly at: number;
}

/**
 * Compares a part of a filter with the levels of a topic from a place on. Returns the offset of the topic's next level; Infinity if the part ends
 * in `#`; -1 if the part does not match. Adds the compared levels to `walk.levels`.
 */
export function walkLevels({ text, start, end }: FilterPart, { walk, at: startsAt }: LevelPlace): number {
  const { topic } = walk;
  let at = startsAt;
  for (let from = start; from <= end; ) {
    walk.levels += 1;
    if (text[from] === "#") return Infinity;
    if (at > topic.length) return -1;
    const to = endOfLevel(text, from);
    const topicTo = endOfLevel(topic, at);
    if (text[from] !== "+" && text.slice(from, to) !== topic.slice(at, topicTo)) return -1;
    from = to + 1;
    at = topicTo + 1;
  }
  return at;
}

/** Offset of the slash that ends the level which begins at `start`, or the length of the text. */
export function endOfLevel(text: string, start: number): number {
  const slash = text.indexOf("/", start);
  return slash === -1 ? text.length : slash;
}
