import fc from "fast-check";
import { expect, it } from "vitest";
import { FilterMap } from "./filter-map.ts";
import { parseTopicFilter, type TopicFilter } from "./topic-filter.ts";
import { parseTopicName } from "./topic-name.ts";

const level = fc.constantFrom("", "a", "b", "$c", "a b");
const topics = fc
  .array(level, { minLength: 1, maxLength: 4 })
  .map((levels) => levels.join("/"))
  .filter((text) => text.trim() !== "" && !text.endsWith("/"));
const patterns = fc
  .tuple(fc.array(fc.oneof(level, fc.constant("+")), { maxLength: 3 }), fc.boolean())
  .map(([levels, isOpen]) => [...levels, ...(isOpen || levels.length === 0 ? ["#"] : [])].join("/"))
  .filter((text) => text.trim() !== "" && (/[+#]/.test(text) || !text.endsWith("/")));

/** The naive model: the filter as a regular expression over the whole name. */
function matchesByPattern(filter: string, topic: string): boolean {
  if (/^[+#]/.test(filter) && topic.startsWith("$")) return false;
  const escaped = filter.replace(/[.*?^${}()|[\]\\]/g, "\\$&");
  const body = escaped.replace(/\+/g, "[^/]*").replace(/(^|\/)#$/, (_, slash) => (slash === "/" ? "(/.*)?" : ".*"));
  return new RegExp(`^${body}$`).test(topic);
}

it("finds exactly the filters that a regular expression finds, even after removals and additions", () => {
  const step = fc.tuple(fc.oneof(topics, patterns), fc.boolean());
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.array(topics), (steps, names) => {
      const map = new FilterMap<string>();
      const model = new Set<TopicFilter>();
      for (const [text, isAdded] of steps) {
        const filter = parseTopicFilter(text);
        if (isAdded) {
          map.set(filter, text);
          model.add(filter);
        } else expect(map.delete(filter)).toBe(model.delete(filter));
      }
      expect([...map.keys()].toSorted()).toEqual([...model].toSorted());
      for (const name of names) {
        const expected = [...model].filter((filter) => matchesByPattern(filter, name));
        expect(map.matching(parseTopicName(name)).toSorted()).toEqual(expected.toSorted());
      }
    }),
    { numRuns: 2_000 },
  );
});
