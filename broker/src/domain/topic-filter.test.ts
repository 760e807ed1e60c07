import { isBrokerError } from "@stele/wire";
import { describe, expect, it } from "vitest";
import { FilterMap } from "./filter-map.ts";
import { matchesFilter, parseTopicFilter } from "./topic-filter.ts";
import { parseTopicName } from "./topic-name.ts";

const rows: readonly (readonly [filter: string, topic: string, matches: boolean, clause: string])[] = [
  ["a", "a", true, "a name matches itself"],
  ["a", "A", false, "names are case sensitive (4.7.3)"],
  ["a/#", "a", true, "# includes the parent level (4.7.1.2)"],
  ["a/#", "a/b", true, "# matches children"],
  ["a/#", "a/b/c", true, "# matches every level below"],
  ["a/#", "ab", false, "# does not match a sibling"],
  ["#", "a", true, "# alone matches everything"],
  ["#", "/a", true, "# alone matches a leading slash"],
  ["+", "a", true, "+ matches one level"],
  ["+", "a/b", false, "+ matches no more than one level"],
  ["+", "/a", false, "+ does not match two levels (4.7.1.3)"],
  ["+/+", "/a", true, "+ matches an empty level (4.7.1.3)"],
  ["/+", "/a", true, "a leading slash is a level"],
  ["a/+/c", "a//c", true, "+ matches an empty level in the middle"],
  ["a/+/c", "a/b/c", true, "+ in the middle"],
  ["a/+/c", "a/b/d", false, "the level after + must match"],
  ["a/+", "a", false, "+ needs its level (4.7.1.3)"],
  ["a/+/#", "a/b", true, "+ then #, parent included"],
  ["a/+/#", "a", false, "+ then # needs the level of +"],
  ["+/b/#", "a/b/c/d", true, "wildcards at both ends"],
  ["#", "$SYS/a", false, "a leading wildcard does not match $ (4.7.2)"],
  ["+/a", "$SYS/a", false, "a leading + does not match $ (4.7.2)"],
  ["$SYS/#", "$SYS/a", true, "$ written out matches"],
  ["a/+", "a/$b", true, "$ below the first level is an ordinary character"],
];

describe("matchesFilter and FilterMap", () => {
  it.each(rows)("the filter %s matches the topic %s: %s (%s)", (filterText, topicText, expected) => {
    const filter = parseTopicFilter(filterText);
    const topic = parseTopicName(topicText);
    const map = new FilterMap<string>();
    map.set(filter, "value");
    expect(matchesFilter(filter, topic)).toBe(expected);
    expect(map.matching(topic)).toEqual(expected ? ["value"] : []);
  });
});

describe("parseTopicFilter", () => {
  const refused: readonly (readonly [string, number])[] = [
    ["a/#/b", 100109],
    ["#/a", 100109],
    ["a#", 100109],
    ["a/b#", 100109],
    ["a+", 100109],
    ["a/+b/c", 100109],
    ["a/++", 100109],
    ["a/", 100106],
    ["", 100103],
    ["\u0001/#", 100106],
    [`${"x".repeat(255)}/#`, 100102],
  ];
  it.each(refused)("refuses %j with %i", (text, code) => {
    expect(() => parseTopicFilter(text)).toThrow(expect.objectContaining({ code }));
  });

  it("accepts wildcards that fill their level", () => {
    for (const text of ["#", "+", "+/+", "a/+/#", "/#", "+/"]) expect(parseTopicFilter(text)).toBe(text);
  });

  it("throws a BrokerError for a misplaced wildcard", () => {
    try {
      parseTopicFilter("a/#/b");
    } catch (error) {
      expect(isBrokerError(error, "topicPatternInvalid")).toBe(true);
    }
    expect.assertions(1);
  });
});
