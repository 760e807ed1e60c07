import { BrokerError } from "@stele/wire";
import { expect, it } from "vitest";
import { coversFilter } from "./filter-containment.ts";
import { isInRanges } from "./name-range.ts";
import { eventFilterOf } from "./shared-filter.ts";
import { TenantNames } from "./tenant-names.ts";
import { isTopicFilter, matchesFilter, type TopicFilter } from "./topic-filter.ts";
import { isTopicName, type TopicName } from "./topic-name.ts";

/** Some names are prefixes of others, look like names that MQTT reserves, or are next to each other in the order of names. */
const tenants = ["a", "ab", "b", "share", "tenant", "SYS", "~", "a-b", "a.b"].map((name) => ({
  name,
  names: new TenantNames(name),
}));

const levels = ["a", "ab", "b", "share", "tenant", "$a", "$tenant", "$share", "$", "", "~"];

/** Every text of 1 to `depth` parts. */
function textsOf(parts: readonly string[], depth: number): readonly string[] {
  if (depth === 1) return parts;
  const shorter = textsOf(parts, depth - 1);
  return [...new Set([...shorter, ...shorter.flatMap((text) => parts.map((part) => `${text}/${part}`))])];
}

const topics = textsOf(levels, 3).filter((text): text is TopicName => isTopicName(text));
const filters = textsOf([...levels, "+", "#"], 3).filter((text): text is TopicFilter => isTopicFilter(text));
const some = <Item>(items: readonly Item[], each: number): readonly Item[] =>
  items.filter((_, index) => index % each === 0);

const real = (names: TenantNames, topic: TopicName): TopicName => names.toReal(topic) as TopicName;
const realFilter = (names: TenantNames, filter: TopicFilter): TopicFilter => names.toReal(filter) as TopicFilter;

it.each(tenants)(
  "the tenant $name gets back each topic and filter that it wrote, and their real names are well-formed",
  ({ names }) => {
    for (const topic of topics) {
      const found = isTopicName(names.toReal(topic)) && names.toView(names.toReal(topic));
      expect([found, isInRanges(real(names, topic), names.ranges)]).toEqual([topic, true]);
    }
    for (const filter of filters) {
      const found = isTopicFilter(names.toReal(filter)) && names.toView(names.toReal(filter));
      const share = `$share/s/${filter}`;
      const realShare = names.toRealFilter(share);
      const filterOfShare = eventFilterOf(realShare as TopicFilter);
      expect([found, names.toViewFilter(realShare), filterOfShare]).toEqual([filter, share, names.toReal(filter)]);
    }
  },
);

it("no topic, filter or share of one tenant belongs to another tenant", () => {
  for (const one of tenants) {
    const reals = [...topics, ...filters].flatMap((text) => [one.names.toReal(text), one.names.toRealFilter(text)]);
    for (const other of tenants.filter((tenant) => tenant !== one)) {
      expect(reals.filter((text) => other.names.isOwn(text) || other.names.isWithin(text))).toEqual([]);
    }
  }
});

it("a tenant's filter matches no topic of another tenant, and matches its own topics as without tenants", () => {
  for (const one of tenants) {
    for (const filter of some(filters, 29)) {
      const asked = realFilter(one.names, filter);
      const own = some(topics, 5).filter(
        (topic) => matchesFilter(asked, real(one.names, topic)) !== matchesFilter(filter, topic),
      );
      expect([filter, own]).toEqual([filter, []]);
      for (const other of tenants.filter((tenant) => tenant !== one)) {
        const foreign = some(topics, 7).filter((topic) => matchesFilter(asked, real(other.names, topic)));
        expect([filter, foreign]).toEqual([filter, []]);
      }
    }
  }
});

it("a real topic that no client can name belongs to no tenant, even if a tenant's filter matches it", () => {
  for (const { name, names } of tenants) {
    for (const topic of [name, `${name}/$x`, `$tenant/${name}`, `$tenant/${name}/x`, `$${name}/x`] as TopicName[]) {
      const holders = tenants.filter((tenant) => tenant.names.isOwn(topic));
      expect([topic, holders.map((tenant) => tenant.name)]).toEqual([topic, []]);
      expect(isInRanges(topic, names.ranges)).toBe(false);
    }
    expect(matchesFilter(realFilter(names, "#" as TopicFilter), name as TopicName)).toBe(true);
  }
});

it("if one filter covers another when both have the tenant's prefix, it also covers the other without the prefix", () => {
  const { names } = tenants[0] ?? { names: new TenantNames("a") };
  const seen = { both: 0, lost: new Set<string>() };
  for (const outer of some(filters, 5)) {
    for (const inner of some(filters, 5)) {
      const without = coversFilter(outer, inner);
      const withPrefix = coversFilter(realFilter(names, outer), realFilter(names, inner));
      if (withPrefix && !without) expect([outer, inner]).toEqual([]);
      if (withPrefix) seen.both += 1;
      else if (without) seen.lost.add(`${outer} ${inner}`);
    }
  }
  expect(seen.both).toBeGreaterThan(1_000);
  // `acme/#` also matches the topic `acme`, which belongs to no tenant; `acme/+/#` does not.
  for (const pair of seen.lost) expect(pair).toMatch(/^\+\/# #$/);
});

it("a malformed text stays malformed with the tenant's prefix", () => {
  const { names } = tenants[1] ?? { names: new TenantNames("ab") };
  for (const text of ["", "  ", "a/", "/", "a+", "a/#/b", "#/", "é"]) {
    expect([text, isTopicFilter(names.toReal(text))]).toEqual([text, false]);
  }
  for (const text of ["$share", "$share/", "$share/g", "$share/g/", "$share//x", "$share/+/x", "$share/g/ "]) {
    const isFilter = (): boolean => isTopicFilter(eventFilterOf(names.toRealFilter(text) as TopicFilter));
    if (text === "$share") expect(isFilter()).toBe(true);
    else expect(isFilter).toThrow(BrokerError);
  }
});

it("the prefix counts towards the longest name, and the error tells how many characters are left", () => {
  const names = new TenantNames("acme");
  expect(() => names.checkLength("x".repeat(251))).not.toThrow();
  expect(() => names.checkLength("x".repeat(252))).toThrow("252 characters, at most 251");
  expect(() => names.checkLength(`$${"x".repeat(242)}`)).not.toThrow();
  expect(() => names.checkLength(`$${"x".repeat(243)}`)).toThrow("244 characters, at most 243");
});
