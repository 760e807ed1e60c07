import { describe, expect, it, test } from "vitest";
import { type AccessRule, bindRules, isAllowed, isRuleFilter, type RuleAction } from "./access-rule.ts";

const acme = { principal: "billing", tenant: "acme" };

function allow(filter: string | undefined, ...actions: RuleAction[]): AccessRule {
  return { effect: "allow", actions, filter };
}

function deny(filter: string | undefined, ...actions: RuleAction[]): AccessRule {
  return { effect: "deny", actions, filter };
}

function grants(rules: readonly AccessRule[], action: RuleAction, topic?: string) {
  return grantsIn("1", rules, [action, topic]);
}

function grantsIn(
  groupId: string,
  rules: readonly AccessRule[],
  [action, topic]: readonly [RuleAction, (string | undefined)?],
) {
  return isAllowed(bindRules(rules, acme), action, { groupId, topic });
}

test("nothing is allowed without a rule", () => {
  expect(grants([], "publish", "a")).toBe(false);
  expect(grants([allow("a", "publish")], "subscribe", "a")).toBe(false);
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
])("with a rule that allows %j, a subscription to %j is allowed: %j", (filter, topic, expected) => {
  expect(grants([allow(filter, "subscribe")], "subscribe", topic)).toBe(expected);
});

test("a deny rule wins, even if it denies only a part of the requested filter", () => {
  const rules = [allow("#", "subscribe", "publish"), deny("secret/#", "subscribe")];
  expect(grants(rules, "subscribe", "secret/a")).toBe(false);
  expect(grants(rules, "subscribe", "#")).toBe(false);
  expect(grants(rules, "subscribe", "+")).toBe(false); // `+` matches `secret`, which `secret/#` denies.
  expect(grants(rules, "subscribe", "open/#")).toBe(true);
  expect(grants(rules, "publish", "secret/a")).toBe(true);
});

test("a rule that denies some topics denies every malformed topic", () => {
  const rules = [allow(undefined, "publish"), deny("secret/#", "publish")];
  for (const topic of ["secret/#/a", "secret/a\n", ""]) expect(grants(rules, "publish", topic)).toBe(false);
  expect(grants(rules, "publish", "open")).toBe(true);
});

test("a rule of one group has no effect in another group", () => {
  const rules = [{ ...allow("a", "publish"), groupId: "2" }];
  expect(grantsIn("2", rules, ["publish", "a"])).toBe(true);
  expect(grants(rules, "publish", "a")).toBe(false);
  expect(grants([allow("a", "publish"), { ...deny("a", "publish"), groupId: "2" }], "publish", "a")).toBe(true);
});

describe("a request without a topic", () => {
  const rules = [allow("a/#", "read"), deny("a/b", "read")];
  it("is allowed if a rule allows some topics", () => expect(grants(rules, "read")).toBe(true));
  it("is denied if a rule denies all topics", () =>
    expect(grants([...rules, deny(undefined, "read")], "read")).toBe(false));
});

test("a rule with a filter does not allow admin; a rule with a group allows admin in that group, but not for the whole broker", () => {
  const ofGroup = { ...allow(undefined, "admin"), groupId: "1" };
  expect(isAllowed(bindRules([ofGroup], acme), "admin", { groupId: undefined, topic: undefined })).toBe(false);
  expect(grants([ofGroup], "admin")).toBe(true);
  expect(grants([allow("#", "admin")], "admin")).toBe(false);
  expect(grants([allow(undefined, "admin")], "admin")).toBe(true);
});

test("denying admin in one group denies it in that group and for the whole broker; denying it with a filter denies it everywhere", () => {
  const whole = { groupId: undefined, topic: undefined };
  const ofGroup = [allow(undefined, "admin"), { ...deny(undefined, "admin"), groupId: "2" }];
  expect(isAllowed(bindRules(ofGroup, acme), "admin", whole)).toBe(false);
  expect([grantsIn("1", ofGroup, ["admin"]), grantsIn("2", ofGroup, ["admin"])]).toEqual([true, false]);
  const ofTopics = [allow(undefined, "admin", "publish"), deny("x/#", "admin", "publish")]; // A token may contain such rules.
  expect(isAllowed(bindRules(ofTopics, acme), "admin", whole)).toBe(false);
  expect([grants(ofTopics, "admin"), grants(ofTopics, "publish", "y")]).toEqual([false, true]);
});

describe("variables in a filter", () => {
  const rules = [allow("${tenant}/${principal}/#", "publish")];
  it("stand for the names of the tenant and the principal", () => {
    expect(grants(rules, "publish", "acme/billing/x")).toBe(true);
    expect(grants(rules, "publish", "acme/other/x")).toBe(false);
    expect(grants(rules, "publish", "${tenant}/${principal}/x")).toBe(false);
  });
  it.each(["+", "#", "a/b", "", "$SYS", "a b"])("with the value %j drop their rule", (tenant) => {
    expect(bindRules(rules, { ...acme, tenant })).toEqual([]);
  });
  it("drop their rule if the principal has no tenant", () => {
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
