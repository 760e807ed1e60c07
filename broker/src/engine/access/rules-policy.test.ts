import { BrokerError } from "@stele/wire";
import { expect, it } from "vitest";
import type { AccessRule } from "../../domain/access-rule.ts";
import { ForwardClock } from "../../lib/forward-clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import { testCaller } from "../testing/as-caller.ts";
import { anonymous, type Caller, toOwnerId } from "./caller.ts";
import { KeyRing } from "./key-ring.ts";
import { RuleSet } from "./rule-set.ts";
import { RulesPolicy } from "./rules-policy.ts";
import { sha256 } from "../testing/key-secret.ts";

const actions: AccessRule["actions"] = ["publish", "subscribe", "read", "admin"];
const roles = new Map([["all", [{ effect: "allow", actions } as const]]]);

/** A policy, and the caller with a certificate whose role allows everything. */
function policyOf(tenant: string | undefined) {
  const clock = new VirtualClock();
  const certificates = [{ name: "DNS:shop", tenant, principal: "shop", roles: ["all"] }];
  const parts = { apiKeys: new MemoryApiKeys(), roles, certificates, sha256, clock, time: new ForwardClock(clock) };
  const ring = new KeyRing({ ...parts, logger: silentLogger, onChecked: () => {} });
  const principal = ring.authenticate(undefined, { names: ["DNS:shop"], validTo: 1 });
  return { policy: new RulesPolicy(ring, undefined), caller: { ...testCaller, principal } };
}

it.each(["x", "globex/x", "acme", "acme/$x", "$x", "$tenant/globex/$x", "#", "+/x", "acmex", "$share/s/acme/#"])(
  "a rule for everything gives a tenant no right to %s, outside its own topics",
  (topic) => {
    const [own, none] = [policyOf("acme"), policyOf(undefined)];
    expect(own.policy.allows(own.caller, "publish", { groupId: "1", topic })).toBe(false);
    expect(none.policy.allows(none.caller, "publish", { groupId: "1", topic })).toBe(true);
  },
);

it.each(["acme/x", "acme/#", "$tenant/acme/$x/#"])("a rule for everything gives a tenant the right to %s", (topic) => {
  const { policy, caller } = policyOf("acme");
  expect(policy.allows(caller, "subscribe", { groupId: "1", topic })).toBe(true);
});

it("a rule for the action admin gives no right to a tenant's principal", () => {
  const scope = { groupId: undefined, topic: undefined };
  const [own, none] = [policyOf("acme"), policyOf(undefined)];
  expect(own.policy.allows(own.caller, "administer", scope)).toBe(false);
  expect(none.policy.allows(none.caller, "administer", scope)).toBe(true);
});

it.each(["administer", "inspect", "chain"] as const)("%s is denied without a rule for the action admin", (action) => {
  const { policy, caller } = policyOf(undefined);
  const rules = new RuleSet([{ effect: "allow", actions: ["publish", "subscribe", "read", "open"] }]);
  const scope = { groupId: undefined, topic: undefined };
  const client = { ...caller, principal: { ...caller.principal, rules } } as Caller;
  expect([policy.allows(caller, action, scope), policy.allows(client, action, scope)]).toEqual([true, false]);
});

it("allows an anonymous or rejected principal nothing but the basic health call", () => {
  const { policy } = policyOf(undefined);
  const principals = [anonymous, { kind: "rejected", reason: "wrong" } as const];
  for (const principal of principals) {
    const caller = { ...testCaller, principal };
    const scope = { groupId: "1", topic: "a" };
    const actions = ["open", "publish", "subscribe", "unsubscribe", "read", "administer", "inspect", "chain"] as const;
    expect(actions.filter((action) => policy.allows(caller, action, scope))).toEqual([]);
    expect(policy.allows(caller, "health", scope)).toBe(true);
  }
});

it("findFault throws the principal's error if its credential could not be checked", () => {
  const error = new BrokerError("busy");
  const { policy } = policyOf(undefined);
  expect(() => policy.findFault({ kind: "rejected", reason: "not known", error })).toThrow(error);
});

it("recalls a rejected principal for an owner that has neither a key nor lasting roles", () => {
  const { policy } = policyOf("acme");
  expect(policy.recall("acme/other" as never)).toMatchObject({ kind: "rejected" });
  expect(policy.recall("acme/shop" as never)).toMatchObject({ kind: "known", id: "acme/shop", tenant: "acme" });
});

it("the rules of an owner are the same object until a role changes, or its keys have other roles", async () => {
  const clock = new VirtualClock();
  const apiKeys = new MemoryApiKeys();
  const parts = { apiKeys, roles, sha256, clock, time: new ForwardClock(clock), logger: silentLogger };
  const ring = new KeyRing({ ...parts, onChecked: () => {} });
  const policy = new RulesPolicy(ring, undefined);
  const seen: (object | undefined)[] = [];
  const look = async (): Promise<void> => {
    await ring.refresh();
    seen.push(policy.rulesOf(toOwnerId("shop", undefined)));
  };
  const key = { digest: "", principal: "shop", tenant: undefined, createdAt: 0, revokedAt: undefined };
  await apiKeys.putRole({ name: "stored", rules: [{ effect: "allow", actions }] }, 10);
  await look();
  await apiKeys.insertApiKey({ ...key, id: "1", roles: ["stored"], expiresAt: undefined }, 10);
  for (const _ of [1, 2]) await look();
  await apiKeys.insertApiKey({ ...key, id: "2", roles: ["all"], expiresAt: clock.now() + 60_000 }, 10);
  for (const _ of [1, 2]) await look();
  await clock.advance(60_000);
  for (const _ of [1, 2]) await look();
  await apiKeys.putRole({ name: "stored", rules: [{ effect: "deny", actions }] }, 10);
  for (const _ of [1, 2]) await look();
  expect(seen[0]).toBeUndefined();
  expect(new Set(seen).size).toBe(5);
  expect([1, 3, 5, 7].every((index) => seen[index] === seen[index + 1])).toBe(true);
});
