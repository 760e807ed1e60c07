import { beforeEach, describe, expect, it } from "vitest";
import type { AccessRule, BoundRule } from "../../domain/access-rule.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { ForwardClock } from "../../lib/forward-clock.ts";
import type { TokenVerdict } from "../../ports/token-verifier.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import type { TokenMapping } from "./token-claims.ts";
import { TokenAuthenticator } from "./token-authenticator.ts";
import { sha256 } from "../testing/key-secret.ts";

const issuer = "https://issuer.example";
const roles = new Map<string, readonly AccessRule[]>([
  ["producer", [{ effect: "allow", actions: ["publish"], filter: "${tenant}/${principal}/#" }]],
]);
const plain: TokenMapping = {
  principalClaim: "sub",
  tenant: "acme",
  tenantClaim: undefined,
  rolesClaim: "realm_access.roles",
  roles: new Map([["writer", ["producer"]]]),
  defaultRoles: [],
  lastingRoles: [],
  aclClaim: undefined,
};
const ownRules = [{ actions: ["read"], filter: "a/#" }];

let clock: VirtualClock;
let verified: string[];
let trusted: boolean;
let answer: () => TokenVerdict | Promise<TokenVerdict>;
const claims = { sub: "shop", realm_access: { roles: ["writer", "unknown"] }, acl: ownRules };
const good = (own: object = claims): TokenVerdict => ({
  status: "verified",
  issuer,
  signer: "key",
  claims: { ...own },
  expiresAt: clock.now() + 60_000,
});
function authenticatorOf(mapping: Partial<TokenMapping> = {}): TokenAuthenticator {
  return new TokenAuthenticator({
    verifier: {
      start: async () => {},
      stop: async () => {},
      verify: async (token) => {
        verified.push(token);
        return answer();
      },
      trusts: () => trusted,
      findWarning: () => undefined,
    },
    mappings: new Map([[issuer, { ...plain, ...mapping }]]),
    roles,
    sha256,
    time: new ForwardClock(clock),
    onChanged: () => {},
  });
}
beforeEach(() => {
  clock = new VirtualClock();
  [verified, trusted] = [[], true];
  answer = () => good();
});

it("verifies a token once until it expires, also for concurrent calls", async () => {
  const tokens = authenticatorOf();
  const [first, second] = await Promise.all([tokens.authenticate("a.b.c"), tokens.authenticate("a.b.c")]);
  expect(first).toBe(second);
  expect(tokens.authenticate("a.b.c")).toBe(first);
  expect(verified).toHaveLength(1);
  await clock.advance(60_000);
  answer = () => ({ status: "refused", reason: "the token is expired" });
  expect(await tokens.authenticate("a.b.c")).toMatchObject({ kind: "rejected", reason: "the token is expired" });
  expect(first.kind === "known" && tokens.findFault(first)).toBe("the token is expired");
});

it("refuses an expired token even if the clock is set back", async () => {
  const tokens = authenticatorOf();
  const principal = await tokens.authenticate("a.b.c");
  await clock.advance(60_000);
  expect(principal.kind === "known" && tokens.findFault(principal)).toBe("the token is expired");
  clock.step(-3_600_000);
  expect(principal.kind === "known" && tokens.findFault(principal)).toBe("the token is expired");
});

it("verifies a token again if its key is not trusted any more", async () => {
  const tokens = authenticatorOf();
  const principal = await tokens.authenticate("a.b.c");
  trusted = false;
  expect(principal.kind === "known" && tokens.findFault(principal)).toContain("not trusted");
  await tokens.authenticate("a.b.c");
  expect(verified).toHaveLength(2);
});

it("caches 10,000 tokens, and verifies an older one again", async () => {
  const tokens = authenticatorOf();
  for (let count = 0; count <= 10_000; count += 1) await tokens.authenticate(`a.${count}.c`);
  expect(tokens.authenticate("a.1.c")).not.toBeInstanceOf(Promise);
  expect(tokens.authenticate("a.0.c")).toBeInstanceOf(Promise);
});

it.each<[string, (tokens: TokenAuthenticator) => Promise<void>]>([
  [
    "replaces by newer ones",
    async (tokens) => {
      for (let count = 1; count <= 10_000; count += 1) await tokens.authenticate(`a.${count}.c`);
    },
  ],
  [
    "finds expired",
    async (tokens) => {
      await clock.advance(60_000);
      await tokens.authenticate("a.0.c");
    },
  ],
])("forgets the decisions about a token that it %s", async (_, drop) => {
  const tokens = authenticatorOf();
  const principal = await tokens.authenticate("a.0.c");
  if (principal.kind !== "known") throw new Error("the token was refused");
  const { rules } = principal;
  const isAllowed = (): boolean => rules.allows("publish", { groupId: "1", topic: "acme/shop/x" });
  const answers = [isAllowed()];
  (rules.rules as BoundRule[]).length = 0; // From now on, only a cached decision allows it.
  answers.push(isAllowed());
  await drop(tokens);
  expect([...answers, isAllowed()]).toEqual([true, true, false]);
});

it("refuses a token as busy while 1,000 others are being verified", async () => {
  const tokens = authenticatorOf();
  const waiting = createDeferred<TokenVerdict>();
  answer = () => waiting.promise;
  const all = Array.from({ length: 1_000 }, (_, index) => tokens.authenticate(`a.${index}.c`));
  expect(tokens.authenticate("x.y.z")).toMatchObject({ kind: "rejected", error: { code: 200_300 } });
  waiting.resolve(good());
  for (const one of all) await one;
});

it("fills the token's tenant and principal into the rules of mapped roles, and ignores other roles", async () => {
  const principal = await authenticatorOf().authenticate("a.b.c");
  expect(principal).toMatchObject({ kind: "known", id: "acme/shop", tenant: "acme" });
  const allows = (topic: string): boolean =>
    principal.kind === "known" && principal.rules.allows("publish", { groupId: "1", topic });
  expect([allows("acme/shop/x"), allows("acme/other"), allows("globex/shop/x")]).toEqual([true, false, false]);
  expect(principal.kind === "known" && principal.rules.rules).toHaveLength(1);
});

it("reads rules from the claim that is configured for them", async () => {
  const principal = await authenticatorOf({ aclClaim: "acl" }).authenticate("a.b.c");
  expect(principal.kind === "known" && principal.rules.allows("read", { groupId: "1", topic: "a/b" })).toBe(true);
});

describe("refuses claims", () => {
  it.each([
    ["without a principal", {}, {}],
    ["whose principal has a slash", { sub: "a/b" }, {}],
    ["whose principal is a wildcard", { sub: "+" }, {}],
    ["whose principal is too long", { sub: "a".repeat(65) }, {}],
    ["whose principal is reserved", { sub: "anonymous" }, {}],
    ["whose principal is an inherited property", {}, { principalClaim: "__proto__" }],
    ["without the tenant that a claim names", { sub: "a" }, { tenant: undefined, tenantClaim: "org" }],
    ["whose rules are not a list", { sub: "a", acl: "all" }, { aclClaim: "acl" }],
    ["with a rule that cannot be read", { sub: "a", acl: [...ownRules, { actions: ["fly"] }] }, { aclClaim: "acl" }],
    ["with a rule that has more fields", { sub: "a", acl: [{ actions: ["read"], not: 1 }] }, { aclClaim: "acl" }],
    ["with a malformed filter", { sub: "a", acl: [{ actions: ["read"], filter: "a/#/b" }] }, { aclClaim: "acl" }],
    ["with an empty filter", { sub: "a", acl: [{ actions: ["read"], filter: "" }] }, { aclClaim: "acl" }],
    ["with a group that is not text", { sub: "a", acl: [{ actions: ["read"], groupId: 1 }] }, { aclClaim: "acl" }],
    ["with an unknown effect", { sub: "a", acl: [{ effect: "denied", actions: ["read"] }] }, { aclClaim: "acl" }],
    ["with a rule without actions", { sub: "a", acl: [{ actions: [] }] }, { aclClaim: "acl" }],
    ["with one unknown action", { sub: "a", acl: [{ actions: ["read", "fly"] }] }, { aclClaim: "acl" }],
    ["with a rule that is null", { sub: "a", acl: [null] }, { aclClaim: "acl" }],
  ])("%s", async (_, own, mapping) => {
    answer = () => good(own);
    expect(await authenticatorOf(mapping).authenticate("a.b.c")).toMatchObject({ kind: "rejected" });
  });
});

it("isToken accepts three parts of Base64 for URLs only", () => {
  expect(["a.b.c", "a.b.", "a.b", "a.b.c.d", "a b.c.d"].map((text) => TokenAuthenticator.isToken(text))).toEqual([
    true,
    false,
    false,
    false,
    false,
  ]);
});

it("rejects a token that is too long, and does not verify it", () => {
  const fault = { kind: "rejected", reason: "the token has more than 12288 characters" };
  expect(authenticatorOf().authenticate(`a.${"b".repeat(12_288)}.c`)).toEqual(fault);
  expect(verified).toEqual([]);
});
