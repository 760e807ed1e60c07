import fc from "fast-check";
import { expect, it } from "vitest";
import { toPosition } from "./position.ts";
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
const added = fc.record({ count: fc.integer({ min: 1, max: 100 }), block: fc.nat({ max: 100 }) });
const counts = fc.array(fc.tuple(topics, added), { maxLength: 30 });
const filters = fc
  .tuple(fc.array(fc.oneof(level, fc.constant("+")), { maxLength: 4 }), fc.boolean())
  .map(([levels, isOpen]) => toTopic(isOpen ? [...levels, "#"] : [...levels, "+"]))
  .map(parseTopicFilter);

it("sums the counts of every topic that a filter matches, and finds the first of their events", () => {
  fc.assert(
    fc.property(counts, filters, (given, filter) => {
      const tally = new TopicTally();
      for (const [topic, { count, block }] of given) tally.add(topic, { count, first: toPosition(block, 0) });
      const matching = given.flatMap(([topic, events]) => (matchesFilter(filter, topic) ? events : []));
      expect(tally.sum(filter)).toEqual({
        count: matching.reduce((sum, { count }) => sum + count, 0),
        first: matching.length === 0 ? undefined : toPosition(Math.min(...matching.map(({ block }) => block)), 0),
      });
    }),
    { numRuns: 500 },
  );
});
