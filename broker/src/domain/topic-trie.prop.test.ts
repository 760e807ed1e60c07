import fc from "fast-check";
import { expect, it } from "vitest";
import { parseTopicFilter, type TopicFilter } from "./topic-filter.ts";
import { parseTopicName } from "./topic-name.ts";
import { TopicTrie } from "./topic-trie.ts";

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

it("finds exactly the filters that a regular expression finds, also after removals", () => {
  fc.assert(
    fc.property(fc.uniqueArray(patterns), fc.array(topics), fc.nat(), (filterTexts, names, seed) => {
      const filters = filterTexts.map(parseTopicFilter);
      const trie = new TopicTrie<TopicFilter>();
      for (const filter of filters) trie.add(filter, filter);
      const kept = filters.filter((filter, index) => (seed >> (index % 16)) % 2 === 0 || !trieRemove(trie, filter));
      for (const name of names) {
        const expected = kept.filter((filter) => matchesByPattern(filter, name));
        const found: TopicFilter[] = [];
        trie.match(parseTopicName(name), (filter) => found.push(filter));
        expect(found.toSorted()).toEqual(expected.toSorted());
      }
    }),
    { numRuns: 500 },
  );
});

function trieRemove(trie: TopicTrie<TopicFilter>, filter: TopicFilter): boolean {
  trie.remove(filter, filter);
  return true;
}
