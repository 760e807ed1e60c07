import { expect, it } from "vitest";
import type { BoundRule } from "../../domain/access-rule.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import { RuleSet } from "./rule-set.ts";
import { usedBytes } from "../../lib/testing/collect-garbage.ts";

const mebibyte = 1024 * 1024;

it("caches a decision only for its action, group and topic", () => {
  const rules = new RuleSet([
    { effect: "allow", actions: ["read"], groupId: "1", filter: "a" as TopicFilter },
    { effect: "allow", actions: ["publish"], groupId: "2", filter: "b" as TopicFilter },
  ]);
  const asked = (["read", "publish"] as const).flatMap((action) =>
    ["1", "2"].flatMap((groupId) => ["a", "b"].map((topic) => ({ action, groupId, topic }))),
  );
  const allowed = [...asked, ...asked]
    .filter(({ action, ...scope }) => rules.allows(action, scope))
    .map(({ action, groupId, topic }) => `${action} ${groupId} ${topic}`);
  expect(allowed).toEqual(["read 1 a", "publish 2 b", "read 1 a", "publish 2 b"]);
});

it("after renew, decides by the new rules, and reads them once", () => {
  let asked = 0;
  let filter = "a" as TopicFilter;
  const rules = new RuleSet(() => {
    asked += 1;
    return [{ effect: "allow", actions: ["read"], filter }];
  });
  const allowed = () => ["a", "b"].filter((topic) => rules.allows("read", { groupId: "1", topic }));
  expect([allowed(), allowed(), asked]).toEqual([["a"], ["a"], 1]);
  filter = "b" as TopicFilter;
  rules.renew();
  expect([allowed(), allowed(), asked]).toEqual([["b"], ["b"], 2]);
});

it("caches no decision about a text that is too long for a topic or a group", () => {
  const rules = new RuleSet([{ effect: "allow", actions: ["read"] }]);
  const long = (number: number): string => Buffer.alloc(mebibyte, String(number)).toString();
  const before = usedBytes();
  for (let number = 0; number < 50; number += 1) {
    expect(rules.allows("read", { groupId: long(number), topic: "a" })).toBe(true);
    expect(rules.allows("read", { groupId: "1", topic: long(number) })).toBe(true);
  }
  expect(usedBytes() - before).toBeLessThan(10 * mebibyte);
  expect(rules.allows("publish", { groupId: "1", topic: "a" })).toBe(false);
});

it("keeps the topics of its decisions, but not the memory of the requests that contained them", () => {
  const rules = new RuleSet([{ effect: "allow", actions: ["read"] }]);
  const before = usedBytes();
  for (let number = 10; number < 60; number += 1) {
    // Node.js keeps longer texts outside of the heap.
    const request = Buffer.alloc(1_000_000, String(number)).toString();
    expect(rules.allows("read", { groupId: "1", topic: request.slice(0, 100) })).toBe(true);
  }
  expect(usedBytes() - before).toBeLessThan(10 * mebibyte);
});

it("caches a bounded number of decisions, however many sets there are", () => {
  const before = usedBytes();
  const sets = Array.from({ length: 3_600 }, () => new RuleSet([{ effect: "allow", actions: ["read"] }]));
  let allowed = 0;
  for (const [number, rules] of sets.entries()) {
    for (let topic = 0; topic < 100; topic += 1)
      if (rules.allows("read", { groupId: "1", topic: `${number} ${topic}`.padEnd(256, "x") })) allowed += 1;
  }
  expect(usedBytes() - before).toBeLessThan(85 * mebibyte);
  expect(allowed).toBe(sets.length * 100);
});

it("decides once for each reader and topic, although 20,000 readers get the events of a few topics in turn", () => {
  let asked = 0;
  const counted: BoundRule = {
    get effect() {
      asked += 1;
      return "allow" as const;
    },
    actions: ["read"],
  };
  const sets = Array.from({ length: 20_000 }, () => new RuleSet([counted]));
  const decideAll = (): void => {
    for (const rules of sets) for (const topic of ["a", "b", "c", "d"]) rules.allows("read", { groupId: "1", topic });
  };
  decideAll();
  const first = asked;
  decideAll();
  expect(first).toBeGreaterThan(0);
  expect(asked).toBe(first);
});

it("keeps no rules of sets that nobody uses any more", () => {
  const before = usedBytes();
  for (let number = 0; number < 2_000; number += 1) {
    const filter = Buffer.alloc(15_000, String(number)).toString() as TopicFilter;
    const rules = new RuleSet([{ effect: "allow", actions: ["read"], filter }]);
    expect(rules.allows("read", { groupId: "1", topic: "a" })).toBe(false);
  }
  expect(usedBytes() - before).toBeLessThan(10 * mebibyte);
});

it("distinguishes a group from the beginning of a topic", () => {
  const rules = new RuleSet([{ effect: "allow", actions: ["read"], groupId: "1", filter: "2a" as TopicFilter }]);
  expect(rules.allows("read", { groupId: "1", topic: "2a" })).toBe(true);
  expect(rules.allows("read", { groupId: "12", topic: "a" })).toBe(false);
});
