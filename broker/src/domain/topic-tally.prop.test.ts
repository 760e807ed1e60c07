import fc from "fast-check";
import { expect, it } from "vitest";
import { matchesFilter, parseTopicFilter } from "./topic-filter.ts";
import { parseTopicName } from "./topic-name.ts";
import { TopicTally } from "./topic-tally.ts";

const level = fc.constantFrom("a", "b", "$c", "");
const toTopic = (levels: readonly string[]): string => levels.join("/");
const topics = fc
  .array(level, { minLength: 1, maxLength: 4 })
  .map(toTopic)
  .filter((topic) => topic !== "" && !topic.endsWith("/"))
  .map(parseTopicName);
const counts = fc.array(fc.tuple(topics, fc.nat({ max: 100 })), { maxLength: 30 });
const filters = fc
  .tuple(fc.array(fc.oneof(level, fc.constant("+")), { maxLength: 4 }), fc.boolean())
  .map(([levels, isOpen]) => toTopic(isOpen ? [...levels, "#"] : [...levels, "+"]))
  .map(parseTopicFilter);

it("sums the counts of every topic that a filter matches", () => {
  fc.assert(
    fc.property(counts, filters, (given, filter) => {
      const tally = new TopicTally();
      for (const [topic, count] of given) tally.add(topic, count);
      const matching = given.filter(([topic]) => matchesFilter(filter, topic));
      expect(tally.sum(filter)).toBe(matching.reduce((sum, [, count]) => sum + count, 0));
    }),
    { numRuns: 500 },
  );
});
