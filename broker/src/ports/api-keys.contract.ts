import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AccessRule } from "../domain/access-rule.ts";
import type { ApiKey, ApiKeys } from "./api-keys.ts";

const ruleFor = (filter: string): readonly AccessRule[] => [{ effect: "allow", actions: ["publish", "open"], filter }];

export function apiKeyOf(number: number, fields: Partial<ApiKey> = {}): ApiKey {
  return {
    id: number.toString(16).padStart(16, "0"),
    digest: "ab".repeat(32),
    principal: `client-${number}`,
    tenant: undefined,
    roles: ["producer", "consumer"],
    createdAt: 1_790_000_000_000 + number,
    expiresAt: undefined,
    revokedAt: undefined,
    ...fields,
  };
}

/** The guarantees of the ApiKeys port. `create` returns two adapters, not started, for the same empty tables, as if two processes used them. */
export function testApiKeys(name: string, create: () => Promise<readonly [ApiKeys, ApiKeys]>): void {
  describe(`${name} keeps the contract of API keys`, () => {
    let one: ApiKeys;
    let other: ApiKeys;
    beforeEach(async () => {
      [one, other] = await create();
      await Promise.all([one.start(), other.start()]);
    });
    afterEach(async () => {
      await Promise.all([one.stop(), other.stop()]);
    });

    it("lists inserted keys, also in another process", async () => {
      const first = apiKeyOf(1, { tenant: "acme", expiresAt: 1_790_000_900_000 });
      expect(await one.insertApiKey(first, 10)).toBe(true);
      expect(await other.insertApiKey(apiKeyOf(2, { roles: [] }), 10)).toBe(true);
      const keys = await other.listApiKeys(0);
      expect(keys).toEqual([
        { ...first, revision: 1 },
        { ...apiKeyOf(2, { roles: [] }), revision: 2 },
      ]);
      expect(await one.listApiKeys(0)).toEqual(keys);
    });

    it("refuses a second key with the same id, and a key above the limit", async () => {
      expect(await one.insertApiKey(apiKeyOf(1), 2)).toBe(true);
      expect(await other.insertApiKey(apiKeyOf(1, { principal: "thief" }), 2)).toBe(false);
      expect(await other.insertApiKey(apiKeyOf(2), 2)).toBe(true);
      expect(await one.insertApiKey(apiKeyOf(3), 2)).toBe(false);
      expect((await one.listApiKeys(0)).map(({ principal }) => principal)).toEqual(["client-1", "client-2"]);
    });

    it("counts neither revoked nor expired keys towards the limit", async () => {
      const { createdAt } = apiKeyOf(3);
      expect(await one.insertApiKey(apiKeyOf(1, { expiresAt: createdAt }), 1)).toBe(true);
      expect(await one.insertApiKey(apiKeyOf(2), 1)).toBe(false);
      expect(await one.insertApiKey(apiKeyOf(3), 1)).toBe(true);
      await one.revokeApiKey(apiKeyOf(3).id, createdAt + 1);
      expect(await other.insertApiKey(apiKeyOf(4, { expiresAt: createdAt + 9 }), 1)).toBe(true);
      expect(await one.insertApiKey(apiKeyOf(5), 1)).toBe(false);
    });

    it("lists only keys that changed after a revision; a second revocation does not change the time of the first", async () => {
      for (const number of [1, 2, 3]) await one.insertApiKey(apiKeyOf(number), 10);
      const upTo = (await other.listApiKeys(0)).at(-1)?.revision ?? 0;
      expect(await other.listApiKeys(upTo)).toEqual([]);
      expect(await one.revokeApiKey(apiKeyOf(2).id, 5_000)).toBe(true);
      expect(await one.revokeApiKey(apiKeyOf(2).id, 6_000)).toBe(true);
      expect(await one.revokeApiKey(apiKeyOf(9).id, 6_000)).toBe(false);
      expect(await other.listApiKeys(upTo)).toMatchObject([{ id: apiKeyOf(2).id, revokedAt: 5_000 }]);
    });

    it("prunes keys that expired or were revoked before the given time", async () => {
      await one.insertApiKey(apiKeyOf(1, { expiresAt: 1_000 }), 10);
      await one.insertApiKey(apiKeyOf(2, { expiresAt: 3_000 }), 10);
      await one.insertApiKey(apiKeyOf(3), 10);
      await one.insertApiKey(apiKeyOf(4), 10);
      await one.revokeApiKey(apiKeyOf(4).id, 1_500);
      expect(await other.pruneApiKeys(2_000, { keepsOwners: false })).toBe(2);
      expect((await one.listApiKeys(0)).map(({ id }) => id)).toEqual([apiKeyOf(2).id, apiKeyOf(3).id]);
      await one.insertApiKey(apiKeyOf(5), 10);
      expect((await other.listApiKeys(0)).map(({ revision }) => revision)).toEqual([2, 3, 6]);
    });

    it("with keepsOwners, pruning keeps the latest key of each principal, as a record that the principal had a key", async () => {
      const [former, latest] = [{ principal: "shop", tenant: "acme" }, { principal: "shop" }];
      for (const number of [1, 2]) await one.insertApiKey(apiKeyOf(number, { ...former, expiresAt: 1_000 }), 10);
      for (const number of [3, 4]) await one.insertApiKey(apiKeyOf(number, { ...latest, expiresAt: 1_000 }), 10);
      await one.insertApiKey(apiKeyOf(5, latest), 10);
      await one.revokeApiKey(apiKeyOf(1).id, 900);
      expect(await other.pruneApiKeys(2_000, { keepsOwners: true })).toBe(3);
      expect((await one.listApiKeys(0)).map(({ id }) => id)).toEqual([apiKeyOf(5).id, apiKeyOf(1).id]);
    });

    it("lists later changes after the newest key it listed was pruned; pruning and refused changes take no revision", async () => {
      await one.insertApiKey(apiKeyOf(1, { expiresAt: 1_000 }), 10);
      expect(await other.listApiKeys(0)).toHaveLength(1);
      expect(await one.pruneApiKeys(2_000, { keepsOwners: false })).toBe(1);
      expect(await one.insertApiKey(apiKeyOf(2), 0)).toBe(false);
      expect(await one.revokeApiKey(apiKeyOf(2).id, 5_000)).toBe(false);
      expect(await other.listApiKeys(1)).toEqual([]);
      await one.insertApiKey(apiKeyOf(2), 10);
      expect(await other.listApiKeys(1)).toEqual([{ ...apiKeyOf(2), revision: 2 }]);
    });

    it("a second revocation of a key adds no revision", async () => {
      await one.insertApiKey(apiKeyOf(1), 10);
      expect(await one.revokeApiKey(apiKeyOf(1).id, 5_000)).toBe(true);
      expect(await one.revokeApiKey(apiKeyOf(1).id, 6_000)).toBe(true);
      expect(await other.listApiKeys(0)).toEqual([{ ...apiKeyOf(1), revokedAt: 5_000, revision: 2 }]);
    });

    it("reads stored roles in the order of their names, also in another process", async () => {
      expect(await one.readRoles(0)).toBeUndefined();
      const all: AccessRule = { effect: "deny", actions: ["admin"], groupId: "2" };
      expect(await one.putRole({ name: "member", rules: ruleFor("${tenant}/#") }, 10)).toBe(true);
      expect(await other.putRole({ name: "guest", rules: [...ruleFor("a"), all] }, 10)).toBe(true);
      expect(await other.putRole({ name: "none", rules: [] }, 10)).toBe(true);
      const read = {
        revision: 3,
        roles: [
          { name: "guest", rules: [...ruleFor("a"), all] },
          { name: "member", rules: ruleFor("${tenant}/#") },
          { name: "none", rules: [] },
        ],
      };
      expect(await other.readRoles(0)).toEqual(read);
      expect(await one.readRoles(0)).toEqual(read);
    });

    it("readRoles returns all roles after a change, even after a removal, and undefined if nothing changed", async () => {
      for (const name of ["a", "b", "c"]) await one.putRole({ name, rules: ruleFor(name) }, 10);
      const { revision = 0 } = (await other.readRoles(0)) ?? {};
      expect(await other.readRoles(revision)).toBeUndefined();
      expect(await one.deleteRole("a")).toBe(true);
      await other.putRole({ name: "b", rules: ruleFor("more") }, 10);
      const changed = [
        { name: "b", rules: ruleFor("more") },
        { name: "c", rules: ruleFor("c") },
      ];
      expect(await other.readRoles(revision)).toEqual({ revision: revision + 2, roles: changed });
      expect(await one.deleteRole("a")).toBe(false);
      expect(await one.putRole({ name: "a", rules: [] }, 2)).toBe(false);
      expect(await other.readRoles(revision + 2)).toBeUndefined();
      await expect(one.readRoles(revision + 100)).rejects.toThrow("replaced by older ones");
    });

    it("refuses a new role above the limit, but still replaces an existing role", async () => {
      expect(await one.putRole({ name: "a", rules: ruleFor("a") }, 1)).toBe(true);
      expect(await other.putRole({ name: "b", rules: ruleFor("b") }, 1)).toBe(false);
      expect(await other.putRole({ name: "a", rules: ruleFor("c") }, 1)).toBe(true);
      expect((await one.readRoles(0))?.roles).toEqual([{ name: "a", rules: ruleFor("c") }]);
    });

    it("refuses to replace a role if the store has more roles than a lowered limit allows", async () => {
      for (const name of ["a", "b", "c"]) expect(await one.putRole({ name, rules: ruleFor(name) }, 3)).toBe(true);
      expect(await other.putRole({ name: "a", rules: ruleFor("new") }, 2)).toBe(false);
      expect((await one.readRoles(0))?.roles[0]).toEqual({ name: "a", rules: ruleFor("a") });
    });

    it("gives each change of a role its own revision, even if two processes write concurrently", async () => {
      const names = Array.from({ length: 20 }, (_, index) => `role-${index}`);
      const put = (name: string, index: number) => (index % 2 ? one : other).putRole({ name, rules: [] }, 100);
      await Promise.all(names.map(put));
      const { revision, roles = [] } = (await one.readRoles(0)) ?? {};
      expect(revision).toBe(names.length);
      expect(roles.map((role) => role.name)).toEqual(names.toSorted());
    });

    it("gives each change of a key its own revision, even if two processes write concurrently", async () => {
      const numbers = Array.from({ length: 20 }, (_, index) => index + 1);
      await Promise.all(numbers.map(async (number) => (number % 2 ? one : other).insertApiKey(apiKeyOf(number), 100)));
      const revisions = (await one.listApiKeys(0)).map(({ revision }) => revision);
      expect(revisions).toEqual(numbers);
    });
  });
}

/** The same tables, opened by a broker and by the command line, with a backup. */
export interface RestorableApiKeys {
  readonly broker: ApiKeys;
  readonly command: ApiKeys;
  save(): Promise<void>;
  /** Replaces the rows by the saved ones. */
  restore(): Promise<void>;
}

/** The guarantees of the ApiKeys port for a broker whose tables somebody restores from a backup. `create` returns adapters that are not started. */
export function testRestoredApiKeys(name: string, create: () => Promise<RestorableApiKeys>): void {
  describe(`${name} keeps the contract of restored API keys`, () => {
    let made: RestorableApiKeys;
    beforeEach(async () => {
      made = await create();
      await made.broker.start();
      await made.command.start();
    });
    afterEach(async () => {
      await Promise.all([made.broker.stop(), made.command.stop()]);
    });

    /** As `stele key create` does. */
    async function createKey(number: number): Promise<void> {
      await made.command.pruneApiKeys(1_000, { keepsOwners: false });
      expect(await made.command.insertApiKey(apiKeyOf(number), 10)).toBe(true);
    }

    async function readAll(): Promise<number> {
      return (await made.broker.listApiKeys(0)).at(-1)?.revision ?? 0;
    }

    it.each([1, 2, 3, 4])(
      "refuses to list keys after a restore that lost the newest key, even if %d changes came after the restore",
      async (count) => {
        await createKey(1);
        await made.save();
        await createKey(2);
        const upTo = await readAll();
        await made.restore();
        await made.command.revokeApiKey(apiKeyOf(1).id, 5_000);
        for (let number = 3; number < 2 + count; number += 1) await createKey(number);
        await expect(made.broker.listApiKeys(upTo)).rejects.toThrow("restart the broker");
      },
    );

    it.each([0, 1])(
      "refuses to list keys after a restore that lost the newest revocation, even if the key was revoked again after %d other changes",
      async (count) => {
        for (const number of [1, 2]) await createKey(number);
        await made.save();
        await made.command.revokeApiKey(apiKeyOf(1).id, 5_000);
        const upTo = await readAll();
        await made.restore();
        if (count > 0) await made.command.revokeApiKey(apiKeyOf(2).id, 6_000);
        await made.command.revokeApiKey(apiKeyOf(1).id, 7_000);
        await expect(made.broker.listApiKeys(upTo)).rejects.toThrow("restart the broker");
      },
    );

    it("refuses to list keys after a restore that lost the newest key and its revocation", async () => {
      await createKey(1);
      await made.save();
      await createKey(2);
      await made.command.revokeApiKey(apiKeyOf(2).id, Date.now());
      const upTo = await readAll();
      await made.restore();
      for (const number of [3, 4]) await createKey(number);
      await expect(made.broker.listApiKeys(upTo)).rejects.toThrow("restart the broker");
    });

    it.each([1, 2])("reads all roles after a restore and %d later changes of roles", async (count) => {
      const { broker, command } = made;
      for (const role of ["a", "b"]) await command.putRole({ name: role, rules: ruleFor(role) }, 10);
      await made.save();
      await command.putRole({ name: "c", rules: ruleFor("c") }, 10);
      const { revision = 0 } = (await broker.readRoles(0)) ?? {};
      await made.restore();
      await command.putRole({ name: "b", rules: [] }, 10);
      for (let number = 1; number < count; number += 1) await command.deleteRole("a");
      const { roles = [] } = (await broker.readRoles(revision)) ?? {};
      const first = count === 1 ? [{ name: "a", rules: ruleFor("a") }] : [];
      expect(roles).toEqual([...first, { name: "b", rules: [] }]);
      expect(await broker.readRoles(revision + count - 1)).toBeUndefined();
    });

    it("lists later changes after a restore that lost no change the broker had read", async () => {
      for (const number of [1, 2]) await createKey(number);
      const upTo = await readAll();
      await made.save();
      await createKey(3);
      await made.restore();
      await made.command.revokeApiKey(apiKeyOf(2).id, 5_000);
      expect(await made.broker.listApiKeys(upTo)).toMatchObject([{ id: apiKeyOf(2).id, revokedAt: 5_000 }]);
    });
  });
}
