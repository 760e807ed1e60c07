import { beforeEach, expect, it, onTestFinished } from "vitest";
import type { AccessRule } from "../../domain/access-rule.ts";
import { ForwardClock } from "../../lib/forward-clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import type { Owner } from "./caller.ts";
import { formatKeyCredential } from "./credential.ts";
import { KeyRing } from "./key-ring.ts";
import { secret } from "../testing/key-secret.ts";
import { usedBytes } from "../../lib/testing/collect-garbage.ts";

const owner = "shop" as Owner; // Owner of the keys of the principal shop without a tenant.
const rules = (...actions: AccessRule["actions"]): readonly AccessRule[] => [{ effect: "allow", actions, filter: "#" }];

let clock: VirtualClock;
let table: MemoryApiKeys;
let ring: KeyRing;
beforeEach(async () => {
  clock = new VirtualClock();
  table = new MemoryApiKeys();
  const keys = { apiKeys: table, roles: new Map(), sha256: (text: string) => text, onChecked: () => {} };
  ring = new KeyRing({ ...keys, clock, time: new ForwardClock(clock), logger: silentLogger });
  await table.putRole({ name: "reader", rules: rules("read") }, 10);
  await table.putRole({ name: "writer", rules: rules("publish") }, 10);
  await insert("former", ["reader"]);
  await ring.start();
  onTestFinished(() => ring.stop());
});

async function insert(id: string, roles: readonly string[], expiresAt?: number): Promise<void> {
  const times = { createdAt: 0, expiresAt, revokedAt: undefined };
  await table.insertApiKey({ id, digest: secret, principal: owner, tenant: undefined, roles, ...times }, 10_000);
}

const later = (): Promise<void> => clock.advance(1_000);

const allowed = (): readonly string[] =>
  (["read", "publish", "subscribe"] as const).filter((action) =>
    ring.rulesOf(owner)?.allows(action, { groupId: "1", topic: "a" }),
  );

it("keeps an owner's rules while its keys change, for as long as their roles are the same", async () => {
  const first = ring.rulesOf(owner)?.rules;
  const found: unknown[] = [];
  await insert("expiring", ["reader", "reader"], clock.now() + 1_500);
  await later();
  found.push(ring.rulesOf(owner)?.rules);
  await later();
  found.push(ring.rulesOf(owner)?.rules);
  await insert("new", ["reader"]);
  await later();
  found.push(ring.rulesOf(owner)?.rules);
  await table.revokeApiKey("former", clock.now());
  await later();
  found.push(ring.rulesOf(owner)?.rules);
  await table.pruneApiKeys(clock.now(), { keepsOwners: false });
  for (let number = 0; number < 1_000; number += 1) await insert(`${number}`, ["reader"]); // Enough to make the ring look for pruned ones.
  await later();
  found.push(ring.rulesOf(owner)?.rules);
  expect(first).toHaveLength(1);
  expect(found.map((one) => one === first)).toEqual([true, true, true, true, true]);
});

it("binds the rules of an owner's only key once, for its callers and for the owner", async () => {
  const id = "0123456789abcdef";
  await table.revokeApiKey("former", clock.now());
  await insert(id, ["writer"]);
  await later();
  const principal = ring.authenticate(formatKeyCredential({ id, secret }));
  const found = [ring.rulesOf(owner)];
  await insert("second", ["writer"]);
  await later();
  found.push(ring.rulesOf(owner));
  await table.revokeApiKey("second", clock.now());
  await later();
  found.push(ring.rulesOf(owner));
  await table.putRole({ name: "writer", rules: rules("subscribe") }, 10);
  await later();
  expect(found.map((one) => principal.kind === "known" && one === principal.rules)).toEqual([true, true, true]);
  expect(allowed()).toEqual(["subscribe"]);
});

it("computes an owner's rules again when the roles of its keys change, or the rules of a role", async () => {
  const found = [allowed()];
  await insert("new", ["writer", "reader"]);
  await later();
  found.push(allowed());
  await table.putRole({ name: "writer", rules: rules("subscribe") }, 10);
  await later();
  found.push(allowed());
  await table.revokeApiKey("new", clock.now());
  await later();
  found.push(allowed());
  expect(found).toEqual([["read"], ["read", "publish"], ["read", "subscribe"], ["read"]]);
});

it("knows a role that changed while no key of the owner had it", async () => {
  await insert("new", ["writer", "reader"]);
  await later();
  expect(allowed()).toEqual(["read", "publish"]);
  await table.revokeApiKey("new", clock.now());
  await later();
  await table.pruneApiKeys(clock.now(), { keepsOwners: false });
  for (let number = 0; number < 1_000; number += 1) await insert(`${number}`, ["reader"]); // Enough to make the ring look for pruned ones.
  await later();
  await table.putRole({ name: "writer", rules: rules("subscribe") }, 10);
  await later();
  await insert("again", ["writer", "reader"]);
  await later();
  expect(allowed()).toEqual(["read", "subscribe"]);
});

it("keeps no owner whose keys were all pruned", async () => {
  const before = usedBytes();
  for (let number = 0; number < 900; number += 1) {
    const principal = Buffer.alloc(15_000, String(number)).toString();
    const key = { id: `long ${number}`, digest: secret, principal, tenant: undefined, roles: ["reader"] };
    await table.insertApiKey({ ...key, createdAt: 0, expiresAt: clock.now() + 1_500, revokedAt: undefined }, 10_000);
  }
  await later();
  for (let number = 0; number < 900; number += 1) {
    expect(ring.isAlive(Buffer.alloc(15_000, String(number)).toString() as Owner)).toBe(true);
  }
  await later();
  await table.pruneApiKeys(clock.now(), { keepsOwners: false });
  for (let number = 0; number < 1_000; number += 1) await insert(`${number}`, ["reader"]); // Enough to make the ring look for pruned ones.
  await later();
  expect(usedBytes() - before).toBeLessThan(6 * 1024 * 1024);
});
