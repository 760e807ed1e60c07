import { expect, it } from "vitest";
import { intersectFilters } from "./filter-intersection.ts";
import { isTopicFilter, matchesFilter } from "./topic-filter.ts";
import type { TopicName } from "./topic-name.ts";

/** All texts of one to three of the levels. */
function textsOf(levels: readonly string[]): readonly string[] {
  const two = levels.flatMap((first) => levels.map((second) => `${first}/${second}`));
  return [...levels, ...two, ...two.flatMap((start) => levels.map((last) => `${start}/${last}`))];
}

const filters = textsOf(["a", "$a", "", "+", "#"]).filter(isTopicFilter);
const topics = textsOf(["a", "b", "$a", ""]) as TopicName[]; // Some are not valid topic names.

it("the intersection of two filters matches exactly the topics that both filters match", () => {
  let common = 0;
  for (const left of filters) {
    for (const right of filters) {
      const both = intersectFilters(left, right);
      const matched = topics.filter((topic) => both !== undefined && matchesFilter(both, topic));
      const expected = topics.filter((topic) => matchesFilter(left, topic) && matchesFilter(right, topic));
      if (matched.join() !== expected.join())
        throw new Error(`"${both}" is not the intersection of "${left}" and "${right}"`);
      common += expected.length;
    }
  }
  expect(common).toBeGreaterThan(1_000);
});
