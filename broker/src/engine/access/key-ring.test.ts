import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { StoredRole } from "../../domain/access-role.ts";
import type { AccessRule } from "../../domain/access-rule.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { ForwardClock } from "../../lib/forward-clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import type { ApiKey, NumberedApiKey } from "../../ports/api-keys.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import type { Owner, Principal } from "./caller.ts";
import { formatKeyCredential } from "./credential.ts";
import { KeyRing, keysReadEveryMs, keysStaleMsMax } from "./key-ring.ts";
import { RuleSet } from "./rule-set.ts";
import { sha256 } from "../testing/key-secret.ts";

const secretOf = (id: string): string => id.repeat(3).slice(0, 43);
const ids = ["a", "b", "c"].map((digit) => digit.repeat(16)) as [string, string, string];
const roles = new Map<string, readonly AccessRule[]>([
  ["producer", [{ effect: "allow", actions: ["publish"], filter: "${tenant}/#" }]],
  ["consumer", [{ effect: "allow", actions: ["subscribe"], filter: "${tenant}/#" }]],
]);

function keyOf(id: string, fields: Partial<ApiKey> = {}): ApiKey {
  const digest = sha256(secretOf(id));
  const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
  return { id, digest, principal: "billing", tenant: "acme", roles: ["producer"], ...times, ...fields };
}

const credentialOf = (id: string): string => formatKeyCredential({ id, secret: secretOf(id) });

let clock: VirtualClock;
let table: MemoryApiKeys;
let checks: (readonly Owner[])[];
let ring: KeyRing;
let isReadable: boolean;
/** Number of times that the ring has asked for the time. It asks for each key whose validity it checks. */
let timeReads: number;
/** If set, a read of the keys returns only after this promise. */
let held: Promise<void> | undefined;
/** Replaces the principal in the rows of revoked keys, as a revocation of a damaged row may leave it. */
let damagedPrincipal: string | undefined;
const damageKey = (key: NumberedApiKey): NumberedApiKey =>
  key.revokedAt === undefined ? key : { ...key, principal: damagedPrincipal ?? key.principal };
/** The role whose row is damaged. */
let damagedRole: string | undefined;
const damage = (role: StoredRole): StoredRole => (role.name === damagedRole ? { ...role, rules: undefined } : role);
beforeEach(async () => {
  clock = new VirtualClock();
  table = new MemoryApiKeys();
  checks = [];
  isReadable = true;
  held = undefined;
  [damagedRole, damagedPrincipal] = [undefined, undefined];
  await table.insertApiKey(keyOf(ids[0]), 10);
  const apiKeys = {
    start: () => table.start(),
    stop: () => table.stop(),
    listApiKeys: async (after: number) => {
      if (!isReadable) throw new Error("gone");
      const read = await table.listApiKeys(after);
      await held;
      return read.map(damageKey);
    },
    readRoles: async (after: number) => {
      const read = await table.readRoles(after);
      return read && { ...read, roles: read.roles.map(damage) };
    },
  };
  const certificates = [
    { name: "DNS:shop.example", tenant: "acme", principal: "holder", roles: ["consumer"] },
    { name: "DNS:other.example", principal: "other", roles: ["consumer"] },
  ];
  const forward = new ForwardClock(clock);
  timeReads = 0;
  const time = {
    now: () => {
      timeReads += 1;
      return forward.now();
    },
  };
  const onChecked = (changed: ReadonlySet<Owner>): void => void checks.push([...changed]);
  ring = new KeyRing({ apiKeys, roles, certificates, sha256, clock, time, logger: silentLogger, onChecked });
  await ring.start();
});
afterEach(() => ring.stop());

const faultOf = (credential: string | undefined): string | undefined => ring.findFault(ring.authenticate(credential));

it("authenticates a key right after start, and gives all its callers the same principal", () => {
  const principal = ring.authenticate(credentialOf(ids[0]));
  expect(principal).toMatchObject({ kind: "known", id: "acme/billing", tenant: "acme", keyId: ids[0] });
  expect(ring.authenticate(credentialOf(ids[0]))).toBe(principal);
  expect(ring.findFault(principal)).toBeUndefined();
});

it.each([
  ["nothing", undefined, "none was given"],
  ["a blank text", "", 'HTTP clients give it as "Authorization: Bearer KEY"'],
  ["an unknown id", formatKeyCredential({ id: "f".repeat(16), secret: secretOf(ids[0]) }), "the broker does not know"],
  ["a wrong secret", formatKeyCredential({ id: ids[0], secret: "b".repeat(43) }), "the broker does not know"],
  ["another key's secret", formatKeyCredential({ id: ids[0], secret: secretOf(ids[1]) }), "the broker does not know"],
  ["a longer secret", `${credentialOf(ids[0])}x`, "neither a whole key"],
  ["the stored digest", `stele_${ids[0]}_${sha256(secretOf(ids[0]))}`, "neither a whole key"],
  ["a trailing line break", `${credentialOf(ids[0])}\n`, "neither a whole key"],
])("refuses %s", (_, credential, fault) => {
  expect(faultOf(credential)).toContain(fault);
});

it("ends the rights of a revoked key's owner, even if the damaged row of the key names somebody else", async () => {
  const owner = "acme/billing" as Owner; // Owner of the keys that `keyOf` makes.
  const scope = { groupId: "1", topic: "acme/x" };
  await table.insertApiKey(keyOf(ids[1], { roles: ["consumer"] }), 10);
  await clock.advance(keysReadEveryMs + 1);
  expect(ring.rulesOf(owner)?.allows("subscribe", scope)).toBe(true);
  damagedPrincipal = "bjlling";
  await table.revokeApiKey(ids[1], clock.now());
  checks.length = 0;
  await clock.advance(keysReadEveryMs + 1);
  expect(checks.flat()).toContain(owner);
  expect(ring.rulesOf(owner)?.allows("subscribe", scope)).toBe(false);
});

it("accepts a new key and refuses a revoked one within a second", async () => {
  await table.insertApiKey(keyOf(ids[1]), 10);
  expect(faultOf(credentialOf(ids[1]))).toContain("does not know");
  await clock.advance(keysReadEveryMs + 1);
  const principal = ring.authenticate(credentialOf(ids[1]));
  expect(ring.findFault(principal)).toBeUndefined();
  await table.revokeApiKey(ids[1], clock.now());
  await clock.advance(keysReadEveryMs + 1);
  expect(ring.findFault(principal)).toBe("the key is revoked");
  expect(faultOf(credentialOf(ids[1]))).toBe("the key is revoked");
  expect(checks.length).toBeGreaterThan(0);
});

it("keeps the result of a later read when an earlier read ends after it", async () => {
  const { promise, resolve } = createDeferred<void>();
  await table.insertApiKey(keyOf(ids[1]), 10);
  held = promise;
  const reading = ring.refresh();
  await clock.settle();
  held = undefined;
  await table.revokeApiKey(ids[1], clock.now());
  const readingAgain = ring.refresh();
  await clock.settle();
  resolve();
  await Promise.all([reading, readingAgain]);
  expect(faultOf(credentialOf(ids[1]))).toBe("the key is revoked");
});

it("refuses a key from the moment it expires", async () => {
  await table.insertApiKey(keyOf(ids[1], { expiresAt: clock.now() + 10_000 }), 10);
  await clock.advance(9_999);
  expect(faultOf(credentialOf(ids[1]))).toBeUndefined();
  await clock.advance(1);
  expect(faultOf(credentialOf(ids[1]))).toBe("the key is expired");
});

it("refuses everybody if it could not read the keys for 30 seconds, until it can read them again", async () => {
  isReadable = false;
  await clock.advance(keysStaleMsMax - 1_000);
  expect(faultOf(credentialOf(ids[0]))).toBeUndefined();
  await clock.advance(2_000);
  expect(() => faultOf(credentialOf(ids[0]))).toThrow("the keys cannot be read");
  isReadable = true;
  await clock.advance(1_000);
  expect(faultOf(credentialOf(ids[0]))).toBeUndefined();
});

it("reports a key as expired even while it cannot read the keys", async () => {
  await table.insertApiKey(keyOf(ids[1], { expiresAt: clock.now() + keysStaleMsMax }), 10);
  await clock.advance(keysReadEveryMs + 1);
  isReadable = false;
  await clock.advance(2 * keysStaleMsMax);
  expect(faultOf(credentialOf(ids[1]))).toBe("the key is expired");
});

describe("the keys of one owner", () => {
  const owner = "acme/billing" as never; // Owner of the keys that `keyOf` makes.
  const allows = (action: "publish" | "subscribe") =>
    ring.rulesOf(owner)?.allows(action, { groupId: "1", topic: "acme/x" });

  it.each(["valid", "revoked"])(
    "have the rules of each role only once, however many %s keys there are",
    async (kind) => {
      const revokedAt = kind === "valid" ? undefined : clock.now();
      for (let number = 0; number < 100; number += 1)
        await table.insertApiKey(
          keyOf(number.toString(16).padStart(16, "0"), { roles: ["producer", "consumer"], revokedAt }),
          200,
        );
      if (kind === "revoked") await table.revokeApiKey(ids[0], clock.now());
      await clock.advance(keysReadEveryMs + 1);
      expect([allows("publish"), allows("subscribe")]).toEqual([true, true]);
      expect(ring.rulesOf(owner)?.rules).toHaveLength(2);
      expect(ring.rulesOf(owner), "made once").toBe(ring.rulesOf(owner));
    },
  );

  it("give the owner the union of their rights, without those of a revoked key", async () => {
    await table.insertApiKey(keyOf(ids[1], { roles: ["consumer"] }), 10);
    await clock.advance(keysReadEveryMs + 1);
    expect([allows("publish"), allows("subscribe")]).toEqual([true, true]);
    await table.revokeApiKey(ids[0], clock.now());
    await clock.advance(keysReadEveryMs + 1);
    expect([allows("publish"), allows("subscribe"), ring.isAlive(owner)]).toEqual([false, true, true]);
    await table.revokeApiKey(ids[1], clock.now());
    await clock.advance(keysReadEveryMs + 1);
    expect(ring.isAlive(owner)).toBe(false);
    const rules = new RuleSet([]);
    const remembered = {
      kind: "known",
      id: owner,
      tenant: "acme",
      rules,
      expiresAt: undefined,
      keyId: undefined,
    } as const;
    expect(ring.findFault(remembered)).toBe("no key of its owner is valid any more");
  });

  it("give the owner no rights of an expired key, even if its rights were asked for before the expiry", async () => {
    await table.insertApiKey(keyOf(ids[1], { roles: ["consumer"], expiresAt: clock.now() + 10_000 }), 10);
    await clock.advance(keysReadEveryMs + 1);
    expect([allows("publish"), allows("subscribe")]).toEqual([true, true]);
    await clock.advance(10_000);
    expect([allows("publish"), allows("subscribe")]).toEqual([true, false]);
  });

  it("give no rights to a principal with the same name in another tenant or without a tenant", async () => {
    await table.insertApiKey(keyOf(ids[1], { tenant: undefined }), 10);
    await table.insertApiKey(keyOf(ids[2], { tenant: "other" }), 10);
    await clock.advance(keysReadEveryMs + 1);
    const found = ids.map((id) => ring.authenticate(credentialOf(id)));
    expect(found).toMatchObject([{ id: "acme/billing" }, { id: "billing" }, { id: "other/billing" }]);
  });
});

const allow = (...actions: AccessRule["actions"]): readonly AccessRule[] => [
  { effect: "allow", actions, filter: "${tenant}/#" },
];
const put = async (name: string, rules: readonly AccessRule[]): Promise<void> => {
  await table.putRole({ name, rules }, 10);
  await clock.advance(keysReadEveryMs + 1);
};

describe("a stored role", () => {
  const scope = { groupId: "1", topic: "acme/x" };
  const rightsOf = (principal: Principal): readonly string[] =>
    (["publish", "subscribe", "read"] as const).filter(
      (action) => principal.kind === "known" && principal.rules.allows(action, scope),
    );
  const rightsNow = (): readonly string[] => rightsOf(ring.authenticate(credentialOf(ids[1])));
  const owner = "acme/billing" as Owner; // Owner of the keys that `keyOf` makes.
  const lacking = "a key of its owner has a role that does not exist";

  it("that changes takes effect within a second, on its keys and on principals that were authenticated before", async () => {
    await table.putRole({ name: "stored", rules: allow("publish", "read") }, 10);
    await table.insertApiKey(keyOf(ids[1], { roles: ["stored"] }), 10);
    await clock.advance(keysReadEveryMs + 1);
    const held = ring.authenticate(credentialOf(ids[1]));
    expect(rightsOf(held)).toEqual(["publish", "read"]);
    expect(ring.rulesOf(owner)?.allows("read", scope), "by both keys of its owner").toBe(true);
    checks.length = 0;
    await put("stored", allow("subscribe"));
    expect([rightsOf(held), rightsNow()]).toEqual([["subscribe"], ["subscribe"]]);
    expect(checks).toContainEqual([owner]);
    expect(ring.rulesOf(owner)?.allows("read", scope)).toBe(false);
    await table.deleteRole("stored");
    await clock.advance(keysReadEveryMs + 1);
    expect([rightsOf(held), ring.findFault(held)]).toEqual([[], lacking]);
    expect(ring.findWarning()).toContain(": stored");
    expect(checks.slice(-2)).toContainEqual([owner]);
    await put("stored", allow("read"));
    expect([rightsOf(held), ring.findFault(held), ring.findWarning()]).toEqual([["read"], undefined, undefined]);
  });

  it("that is missing ends the rights of all keys of its owner, since the role may have denied something", async () => {
    await table.insertApiKey(keyOf(ids[1], { roles: ["producer", "gone"] }), 10);
    await table.insertApiKey(keyOf(ids[2], { principal: "other" }), 10);
    await clock.advance(keysReadEveryMs + 1);
    expect([rightsNow(), ...ids.map((id) => faultOf(credentialOf(id)))]).toEqual([[], lacking, lacking, undefined]);
    expect(ring.isAlive(owner)).toBe(false);
    await table.revokeApiKey(ids[1], clock.now());
    await clock.advance(keysReadEveryMs + 1);
    expect([faultOf(credentialOf(ids[0])), ring.isAlive(owner), ring.findWarning()]).toEqual([
      undefined,
      true,
      undefined,
    ]);
  });

  it("that is missing does not affect the owner's other keys once the key that names it has expired", async () => {
    await table.insertApiKey(keyOf(ids[1], { roles: ["gone"], expiresAt: clock.now() + 10_000 }), 10);
    await clock.advance(keysReadEveryMs + 1);
    expect(faultOf(credentialOf(ids[0]))).toBe(lacking);
    await clock.advance(10_000);
    expect(faultOf(credentialOf(ids[0]))).toBeUndefined();
  });

  it("that is damaged ends the rights of its owners, and a warning names it, until it is stored again", async () => {
    damagedRole = "limits";
    await table.putRole({ name: "limits", rules: [{ effect: "deny", actions: ["read"] }] }, 10);
    await table.insertApiKey(keyOf(ids[1], { roles: ["producer", "limits"] }), 10);
    await clock.advance(keysReadEveryMs + 1);
    expect([rightsNow(), faultOf(credentialOf(ids[1]))]).toEqual([[], lacking]);
    expect(ring.findWarning()).toContain("limits (damaged)");
    expect(ring.roles.find("limits")).toMatchObject({ isDamaged: true, rules: [] });
    damagedRole = undefined;
    await put("limits", []);
    expect([rightsNow(), faultOf(credentialOf(ids[1])), ring.findWarning()]).toEqual([
      ["publish"],
      undefined,
      undefined,
    ]);
  });

  it("is ignored if the config file has a role with its name", async () => {
    await put("producer", allow("read"));
    expect(rightsOf(ring.authenticate(credentialOf(ids[0])))).toEqual(["publish"]);
    expect(ring.roles.find("producer")).toMatchObject({ source: "file", hidesStored: true });
  });

  it("is found right after a refresh", async () => {
    await table.putRole({ name: "producer-2", rules: allow("read") }, 10);
    expect(ring.roles.find("producer-2")).toBeUndefined();
    await ring.refresh();
    expect(ring.roles.find("producer-2")).toMatchObject({ source: "store", rules: allow("read") });
  });
});

const certificateOf = (...names: readonly string[]) => ({ names, validTo: clock.now() + 1_000 });

describe("a client certificate", () => {
  it("authenticates as its principal until it expires", async () => {
    const certificate = certificateOf("DNS:unknown.example", "DNS:shop.example");
    const principal = ring.authenticate(undefined, certificate);
    expect(principal).toMatchObject({ kind: "known", id: "acme/holder", tenant: "acme" });
    expect(ring.authenticate(undefined, certificate), "one object for each connection").toBe(principal);
    const scope = { groupId: "1", topic: "acme/a" };
    expect(ring.rulesOf("acme/holder" as never)?.allows("subscribe", scope)).toBe(true);
    expect(ring.findFault(principal)).toBeUndefined();
    await clock.advance(1_000);
    expect(ring.findFault(principal)).toBe("the certificate is expired");
  });

  it.each([
    ["of nobody", ["DNS:unknown.example"], "no name of the certificate is configured"],
    ["without names", [], "no name of the certificate is configured"],
    ["of two principals", ["DNS:other.example", "DNS:shop.example"], "several names of the certificate are configured"],
    ["with one name twice", ["DNS:shop.example", "DNS:shop.example"], undefined],
  ])("%s %j gives the fault %j", (_, names, fault) => {
    expect(ring.findFault(ring.authenticate(undefined, certificateOf(...names)))).toBe(fault);
  });

  it("is ignored if the client gives a credential", () => {
    const certificate = certificateOf("DNS:shop.example");
    expect(ring.authenticate("wrong", certificate).kind).toBe("rejected");
    expect(ring.authenticate("stele_certificate DNS:shop.example_", certificate).kind).toBe("rejected");
  });
});

const numberedId = (number: number): string => number.toString(16).padStart(16, "0");

it("does not look at the ended keys of an owner for each delivery", async () => {
  for (let number = 1; number <= 500; number += 1)
    await table.insertApiKey(keyOf(numberedId(number), { expiresAt: clock.now() + 1_000 }), 10_000);
  await table.insertApiKey(keyOf(ids[1], { expiresAt: clock.now() + 60_000 }), 10_000);
  await table.revokeApiKey(ids[0], clock.now());
  await clock.advance(5_000);
  const owner = "acme/billing" as Owner;
  timeReads = 0;
  for (let delivery = 0; delivery < 100; delivery += 1) expect(ring.isAlive(owner)).toBe(true);
  expect(timeReads).toBeLessThan(1_000);
  await clock.advance(60_000);
  expect(ring.isAlive(owner)).toBe(false);
});

it("forgets keys that were pruned from the table, and no others", async () => {
  const start = clock.now();
  const insert = async (number: number, expiresAt: number): Promise<void> => {
    await table.insertApiKey(keyOf(numberedId(number), { principal: `job${number % 9}`, expiresAt }), 10_000);
  };
  const faultOf = (id: string): string | undefined => ring.findFault(ring.authenticate(credentialOf(id)));
  for (let number = 1; number <= 1_500; number += 1) await insert(number, start + 1_000);
  await clock.advance(keysReadEveryMs);
  expect(faultOf(numberedId(7))).toBeUndefined();
  await clock.advance(5_000);
  expect(faultOf(numberedId(7))).toBe("the key is expired");
  await table.insertApiKey(keyOf(ids[1], { principal: "job7" }), 10_000);
  await table.pruneApiKeys(start + 2_000, { keepsOwners: false });
  for (let number = 2_001; number <= 4_000; number += 1) await insert(number, start + 9_000);
  await clock.advance(2 * keysReadEveryMs);
  expect(faultOf(numberedId(7))).toBe("the broker does not know this credential");
  expect(ring.isAlive("acme/job7" as Owner)).toBe(true);
  for (const id of [ids[0], ids[1], numberedId(2_001), numberedId(4_000)]) expect(faultOf(id)).toBeUndefined();
  const holder = { names: ["DNS:shop.example"], validTo: start + 100_000 };
  expect(ring.findFault(ring.authenticate(undefined, holder))).toBeUndefined();
});
