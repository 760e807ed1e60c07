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

/** Chooses pseudo-randomly, and the same in each run. */
function createChoice(seed: number): (count: number) => number {
  let state = seed;
  return (count) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * count);
  };
}

it("coversFilter and overlapsFilter agree with matchesFilter over all short topics, for 100,000 pairs of filters", () => {
  const choose = createChoice(46);
  const wrong: string[] = [];
  const seen = { covers: 0, overlaps: 0 };
  for (let pair = 0; pair < 100_000; pair += 1) {
    const [outer, inner] = [filters[choose(filters.length)], filters[choose(filters.length)]];
    if (outer === undefined || inner === undefined) throw new Error("no filter");
    const [ofOuter = new Set(), ofInner = new Set()] = [matched.get(outer), matched.get(inner)];
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
