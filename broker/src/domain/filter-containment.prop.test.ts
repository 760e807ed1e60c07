import { expect, it } from "vitest";
import { coversFilter, overlapsFilter } from "./filter-containment.ts";
import { isTopicFilter, matchesFilter, type TopicFilter } from "./topic-filter.ts";
import { isTopicName, type TopicName } from "./topic-name.ts";

const depthMax = 4;
const filterDepthMax = 3;

/** Every text of 1 to `depth` levels. */
function textsOf(levels: readonly string[], depth: number): readonly string[] {
  if (depth === 1) return levels;
  const shorter = textsOf(levels, depth - 1);
  const longest = shorter.filter((text) => text.split("/").length === depth - 1);
  return [...shorter, ...longest.flatMap((text) => levels.map((level) => `${text}/${level}`))];
}

// Two filters name at most `a`, `b` and `$a`; `x` and `$x` stand for every other level.
const topics = textsOf(["a", "b", "x", "$a", "$x", ""], depthMax).filter((text): text is TopicName =>
  isTopicName(text),
);
const filters = textsOf(["a", "b", "$a", "", "+", "#"], filterDepthMax).filter((text): text is TopicFilter =>
  isTopicFilter(text),
);
const matched = new Map(
  filters.map((filter) => [filter, new Set(topics.filter((topic) => matchesFilter(filter, topic)))]),
);

it("coversFilter and overlapsFilter agree with matchesFilter over all short topics, for all pairs of short filters", () => {
  const wrong: string[] = [];
  const seen = { covers: 0, overlaps: 0 };
  for (const [outer, ofOuter] of matched)
    for (const [inner, ofInner] of matched) {
      const covers = [...ofInner].every((topic) => ofOuter.has(topic));
      const overlaps = [...ofInner].some((topic) => ofOuter.has(topic));
      seen.covers += covers ? 1 : 0;
      seen.overlaps += overlaps ? 1 : 0;
      if (coversFilter(outer, inner) !== covers) wrong.push(`${outer} covers ${inner}: ${covers}`);
      if (overlapsFilter(outer, inner) !== overlaps) wrong.push(`${outer} overlaps ${inner}: ${overlaps}`);
    }
  expect(wrong).toEqual([]);
  expect(seen.covers).toBeGreaterThan(1_000);
  expect(seen.overlaps).toBeGreaterThan(1_000);
});
