import { expect, it } from "vitest";
import { FilterMap } from "./filter-map.ts";
import { parseTopicFilter, type TopicFilter } from "./topic-filter.ts";
import { parseTopicName, topicCharactersMax } from "./topic-name.ts";
import { usedBytes } from "../lib/testing/collect-garbage.ts";

/** Filters with as many levels as fit. No two have the same first level. */
function deepFilters(count: number, end: string): readonly TopicFilter[] {
  return Array.from({ length: count }, (_, index) => {
    const levels = "/a".repeat(topicCharactersMax / 2 - 5);
    return parseTopicFilter(`${index}${levels}${end}`);
  });
}

/** Bytes of the heap that stay in use after `work`. */
function keptBytes(work: () => void): number {
  const before = usedBytes();
  work();
  return usedBytes() - before;
}

it.each(["", "/+", "/#"])(
  "takes memory in proportion to the length of filters, not to their number of levels: filters that end in %j",
  (end) => {
    const filters = deepFilters(2_000, end);
    const map = new FilterMap<number>();
    const kept = keptBytes(() => {
      for (const [index, filter] of filters.entries()) map.set(filter, index);
    });
    expect(kept).toBeLessThan(filters.length * 1_000); // with a map for each level, 50 times as much
    for (const [index, filter] of filters.entries()) {
      expect(map.matching(parseTopicName(filter.replace(/[+#]/, "b")))).toEqual([index]);
    }
  },
);

it("frees the memory of removed filters", () => {
  const kept = deepFilters(300, "/#");
  const [first, map] = [mapOf(kept), mapOf(kept)];
  addAndRemoveParents(first, kept); // compiled code takes memory too
  const bytes = keptBytes(() => addAndRemoveParents(map, kept));
  expect(bytes).toBeLessThan(kept.length * 1_000); // with the branches of each parent, 20 times as much
  for (const filter of kept) expect(map.matching(parseTopicName(filter.replace("#", "b")))).toEqual([filter]);
});

function mapOf(filters: readonly TopicFilter[]): FilterMap<string> {
  const map = new FilterMap<string>();
  for (const filter of filters) map.set(filter, filter);
  return map;
}

function addAndRemoveParents(map: FilterMap<string>, filters: readonly TopicFilter[]): void {
  for (const filter of filters) {
    const parents = [...filter.matchAll(/\//g)].map(({ index }) => parseTopicFilter(`${filter.slice(0, index)}/+`));
    for (const parent of parents) map.set(parent, parent);
    expect(parents.filter((parent) => !map.delete(parent))).toEqual([]);
  }
}

it("stops matching after levelsMax levels, also within branches of many levels", () => {
  const tail = "/a".repeat(50);
  const map = new FilterMap<number>();
  for (let bits = 0; bits < 1_024; bits += 1) {
    const levels = Array.from({ length: 10 }, (_, level) => ((bits >> level) & 1 ? "+" : "a"));
    map.set(parseTopicFilter(`${levels.join("/")}${tail}/+`), bits);
  }
  const topic = parseTopicName(`${"a/".repeat(10)}a${tail}`);
  const found: number[] = [];
  const looked = map.match(topic, { onMatch: (value) => found.push(value), levelsMax: 1_000 });
  expect(looked).toBeGreaterThanOrEqual(1_000);
  expect(looked).toBeLessThan(1_000 + 61);
  expect(found.length).toBeGreaterThan(0);
  expect(found.length).toBeLessThan(20);
  expect(map.matching(topic)).toHaveLength(1_024);
});
