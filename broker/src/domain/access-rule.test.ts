import { describe, expect, it, test } from "vitest";
import { type AccessRule, bindRules, isAllowed, isRuleFilter, type RuleAction } from "./access-rule.ts";

const acme = { principal: "billing", tenant: "acme" };

function allow(filter: string | undefined, ...actions: RuleAction[]): AccessRule {
  return { effect: "allow", actions, filter };
}

function deny(filter: string | undefined, ...actions: RuleAction[]): AccessRule {
  return { effect: "deny", actions, filter };
}

function asks(rules: readonly AccessRule[], action: RuleAction, topic?: string) {
  return asksIn("1", rules, [action, topic]);
}

function asksIn(
  groupId: string,
  rules: readonly AccessRule[],
  [action, topic]: readonly [RuleAction, (string | undefined)?],
) {
  return isAllowed(bindRules(rules, acme), action, { groupId, topic });
}

test("nothing is allowed without a rule", () => {
  expect(asks([], "publish", "a")).toBe(false);
  expect(asks([allow("a", "publish")], "subscribe", "a")).toBe(false);
});

test.each([
  ["orders/+", "orders/1", true],
  ["orders/+", "orders/+", true],
  ["orders/+", "orders/#", false],
  ["orders/+", "#", false],
  ["orders/#", "orders", true],
  ["#", "$SYS/x", false],
  [undefined, "$SYS/x", true],
  ["+/#", "#", true],
  ["orders/#", "orders/+/x", true],
  ["orders/#", "orders\n", false],
  [undefined, "orders\n", true],
])("a rule for %j and a subscription to %j: %j", (filter, topic, expected) => {
  expect(asks([allow(filter, "subscribe")], "subscribe", topic)).toBe(expected);
});

test("a denial wins, also over a part of what is asked for", () => {
  const rules = [allow("#", "subscribe", "publish"), deny("secret/#", "subscribe")];
  expect(asks(rules, "subscribe", "secret/a")).toBe(false);
  expect(asks(rules, "subscribe", "#")).toBe(false);
  expect(asks(rules, "subscribe", "+")).toBe(false); // It matches `secret`.
  expect(asks(rules, "subscribe", "open/#")).toBe(true);
  expect(asks(rules, "publish", "secret/a")).toBe(true);
});

test("a denial of some topics denies a topic that is not well-formed", () => {
  const rules = [allow(undefined, "publish"), deny("secret/#", "publish")];
  for (const topic of ["secret/#/a", "secret/a\n", ""]) expect(asks(rules, "publish", topic)).toBe(false);
  expect(asks(rules, "publish", "open")).toBe(true);
});

test("a rule of one group says nothing of another", () => {
  const rules = [{ ...allow("a", "publish"), groupId: "2" }];
  expect(asksIn("2", rules, ["publish", "a"])).toBe(true);
  expect(asks(rules, "publish", "a")).toBe(false);
  expect(asks([allow("a", "publish"), { ...deny("a", "publish"), groupId: "2" }], "publish", "a")).toBe(true);
});

describe("without a topic, a right to some is enough", () => {
  const rules = [allow("a/#", "read"), deny("a/b", "read")];
  it("of the group", () => expect(asks(rules, "read")).toBe(true));
  it("but not if all is denied", () => expect(asks([...rules, deny(undefined, "read")], "read")).toBe(false));
});

test("admin is given by a rule without a filter, for the whole broker by one without a group", () => {
  const ofGroup = { ...allow(undefined, "admin"), groupId: "1" };
  expect(isAllowed(bindRules([ofGroup], acme), "admin", { groupId: undefined, topic: undefined })).toBe(false);
  expect(asks([ofGroup], "admin")).toBe(true);
  expect(asks([allow("#", "admin")], "admin")).toBe(false);
  expect(asks([allow(undefined, "admin")], "admin")).toBe(true);
});

test("a denial of admin for one group denies the whole broker and that group, and one with a filter everything", () => {
  const whole = { groupId: undefined, topic: undefined };
  const ofGroup = [allow(undefined, "admin"), { ...deny(undefined, "admin"), groupId: "2" }];
  expect(isAllowed(bindRules(ofGroup, acme), "admin", whole)).toBe(false);
  expect([asksIn("1", ofGroup, ["admin"]), asksIn("2", ofGroup, ["admin"])]).toEqual([true, false]);
  const ofTopics = [allow(undefined, "admin", "publish"), deny("x/#", "admin", "publish")]; // As a token may bring them.
  expect(isAllowed(bindRules(ofTopics, acme), "admin", whole)).toBe(false);
  expect([asks(ofTopics, "admin"), asks(ofTopics, "publish", "y")]).toEqual([false, true]);
});

describe("variables", () => {
  const rules = [allow("${tenant}/${principal}/#", "publish")];
  it("stand for the tenant and the name of the principal", () => {
    expect(asks(rules, "publish", "acme/billing/x")).toBe(true);
    expect(asks(rules, "publish", "acme/other/x")).toBe(false);
    expect(asks(rules, "publish", "${tenant}/${principal}/x")).toBe(false);
  });
  it.each(["+", "#", "a/b", "", "$SYS", "a b"])("with the value %j leave their rule out", (tenant) => {
    expect(bindRules(rules, { ...acme, tenant })).toEqual([]);
  });
  it("without a tenant leave their rule out", () => {
    expect(bindRules(rules, { ...acme, tenant: undefined })).toEqual([]);
  });
});

test.each([
  ["a/${tenant}/#", true],
  ["${principal}", true],
  ["a/#/b", false],
  ["", false],
  ["a/${other}", false],
])("isRuleFilter(%j) is %j", (text, expected) => {
  expect(isRuleFilter(text)).toBe(expected);
});
