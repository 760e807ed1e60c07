import { expect, it } from "vitest";
import type { AccessRule } from "../../domain/access-rule.ts";
import { LastingRules } from "./lasting-rules.ts";
import type { TokenMapping } from "./token-claims.ts";

const roles = new Map<string, readonly AccessRule[]>([
  ["reader", [{ effect: "allow", actions: ["subscribe"], filter: "${tenant}/${principal}/#" }]],
  ["own", [{ effect: "allow", actions: ["subscribe"], filter: "${principal}/#" }]],
]);
const plain: TokenMapping = {
  principalClaim: "sub",
  tenant: undefined,
  tenantClaim: undefined,
  rolesClaim: "roles",
  roles: new Map(),
  defaultRoles: ["own"],
  lastingRoles: [],
  aclClaim: undefined,
};

function rulesOf(...mappings: readonly Partial<TokenMapping>[]): LastingRules {
  const named = mappings.map((mapping, index) => [`issuer ${index}`, { ...plain, ...mapping }] as const);
  return new LastingRules({ mappings: new Map(named), roles });
}
const mayReceive = (rules: LastingRules, owner: string, topic: string): boolean | undefined =>
  rules.of(owner as never)?.allows("subscribe", { groupId: "1", topic });

it("lasting rules come from the issuer of the owner's tenant, and are bound to the owner's name", () => {
  const rules = rulesOf({ tenant: "acme", lastingRoles: ["reader"] }, { tenant: "globex" });
  expect(mayReceive(rules, "acme/shop", "acme/shop/x")).toBe(true);
  expect(mayReceive(rules, "acme/shop", "acme/other/x")).toBe(false);
  expect(rules.of("globex/shop" as never), "no roles that last").toBeUndefined();
  expect(rules.of("initech/shop" as never), "no issuer").toBeUndefined();
  expect(rules.of("shop" as never), "no tenant").toBeUndefined();
});

it("lasting rules from an issuer whose tokens name the tenant apply to every tenant, and not to owners without a tenant", () => {
  const rules = rulesOf({ tenantClaim: "org", lastingRoles: ["reader"] });
  expect(mayReceive(rules, "acme/shop", "acme/shop/x")).toBe(true);
  expect(rules.of("shop" as never)).toBeUndefined();
});

it("lasting rules from an issuer without tenants apply neither to owners with a tenant nor to the anonymous owner", () => {
  const rules = rulesOf({ lastingRoles: ["own"] });
  expect(mayReceive(rules, "shop", "shop/x")).toBe(true);
  expect(rules.of("acme/shop" as never)).toBeUndefined();
  expect(rules.of("anonymous" as never)).toBeUndefined();
});
