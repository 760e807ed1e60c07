import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { apiKeyOf, testApiKeys, testRestoredApiKeys } from "../../../ports/api-keys.contract.ts";
import { temporaryFile } from "../../temporary-file.contract.ts";
import { openNative } from "./native.ts";
import { checksumOf } from "../../checksum.ts";
import { createSqliteApiKeys, readSqliteRoles } from "./sqlite-api-keys.ts";

testApiKeys("SQLite", async () => {
  const file = temporaryFile();
  return [createSqliteApiKeys(file), createSqliteApiKeys(file)];
});

testRestoredApiKeys("SQLite", async () => {
  const [file, backup] = [temporaryFile(), temporaryFile()];
  const tables = ["api_keys", "api_key_revisions", "access_roles", "access_role_revisions"];
  const replacing = tables.map((table) => `delete from ${table}; insert into ${table} select * from backup.${table};`);
  return {
    broker: createSqliteApiKeys(file),
    command: createSqliteApiKeys(file),
    save: async () => copyFileSync(file, backup),
    // Copies rows, not the file: SQLite would not notice a replaced file with the same number of transactions.
    restore: () => change(file, `attach '${backup}' as backup; ${replacing.join(" ")}`),
  };
});

async function change(file: string, statement: string): Promise<void> {
  const native = await openNative(file);
  native.exec(statement);
  native.close();
}

it.each(["roles = '[\"admin\"]'", "roles = 'not a list'", "roles = x'00'", "created_at = 1.5", "principal = x'01'"])(
  "does not list a key after another program set %s in its row; revoking the key works, and leaves it without roles",
  async (damage) => {
    const file = temporaryFile();
    const keys = createSqliteApiKeys(file);
    await keys.start();
    await keys.insertApiKey(apiKeyOf(1), 10);
    await keys.insertApiKey(apiKeyOf(2), 10);
    await change(file, `update api_keys set ${damage} where key_id = '${apiKeyOf(1).id}'`);
    expect(await keys.listApiKeys(0)).toMatchObject([{ id: apiKeyOf(2).id }]);
    expect(await keys.revokeApiKey(apiKeyOf(1).id, 5_000)).toBe(true);
    const [valid, revoked, ...others] = await keys.listApiKeys(0);
    expect([valid, others]).toMatchObject([{ id: apiKeyOf(2).id }, []]);
    expect(revoked ?? { roles: [], revokedAt: 5_000 }).toMatchObject({ roles: [], revokedAt: 5_000 });
    await keys.stop();
  },
);

it("refuses to list keys after another file replaced their file, and after the file was removed", async () => {
  const [file, backup] = [temporaryFile(), temporaryFile()];
  const keys = createSqliteApiKeys(file);
  await keys.start();
  await keys.insertApiKey(apiKeyOf(1), 10);
  copyFileSync(file, backup);
  renameSync(backup, file);
  await expect(keys.listApiKeys(1)).rejects.toThrow("was replaced");
  rmSync(file);
  await expect(keys.listApiKeys(1)).rejects.toThrow("no such file");
  await keys.stop();
});

/** Starts `keys` on a file with two keys, and writes an older copy with one key over it. Returns the revision of the second key. */
async function replaceByOlder(keys: ReturnType<typeof createSqliteApiKeys>, file: string): Promise<number> {
  const backup = temporaryFile();
  await keys.start();
  await keys.insertApiKey(apiKeyOf(1), 10);
  copyFileSync(file, backup);
  await keys.insertApiKey(apiKeyOf(2), 10);
  const upTo = (await keys.listApiKeys(0)).at(-1)?.revision ?? 0;
  copyFileSync(backup, file);
  return upTo;
}

it("refuses to list keys after an older copy was written over their file", async () => {
  const file = temporaryFile();
  const keys = createSqliteApiKeys(file);
  const upTo = await replaceByOlder(keys, file);
  await expect(keys.listApiKeys(upTo)).rejects.toThrow("replaced by older ones");
  await keys.stop();
});

it("still refuses to list keys and roles after new changes in the older copy reach the revision that was read", async () => {
  const file = temporaryFile();
  const [keys, command] = [createSqliteApiKeys(file), createSqliteApiKeys(file)];
  const upTo = await replaceByOlder(keys, file);
  await expect(keys.listApiKeys(upTo)).rejects.toThrow("replaced by older ones");
  await command.start();
  await command.revokeApiKey(apiKeyOf(1).id, 5_000); // This change takes the revision of the lost second key.
  await command.stop();
  await expect(keys.listApiKeys(upTo)).rejects.toThrow("restart the broker");
  await expect(keys.readRoles(0)).rejects.toThrow("restart the broker");
  await keys.stop();
});

it("lists new keys even if the row of the newest key that was read is damaged", async () => {
  const file = temporaryFile();
  const keys = createSqliteApiKeys(file);
  await keys.start();
  await keys.insertApiKey(apiKeyOf(1), 10);
  expect(await keys.listApiKeys(0)).toHaveLength(1);
  await change(file, "update api_keys set roles = x'00'");
  await keys.insertApiKey(apiKeyOf(2), 10);
  expect(await keys.listApiKeys(1)).toMatchObject([{ id: apiKeyOf(2).id }]);
  await keys.stop();
});

it("lists later changes even if another program lowered the newest revision", async () => {
  const file = temporaryFile();
  const keys = createSqliteApiKeys(file);
  await keys.start();
  for (const number of [1, 2, 3]) await keys.insertApiKey(apiKeyOf(number), 10);
  await change(file, "update api_key_revisions set revision = 1");
  const upTo = (await keys.listApiKeys(0)).at(-1)?.revision ?? 0;
  expect(await keys.listApiKeys(upTo)).toEqual([]);
  await keys.revokeApiKey(apiKeyOf(1).id, 5_000);
  expect(await keys.listApiKeys(upTo)).toMatchObject([{ id: apiKeyOf(1).id, revokedAt: 5_000 }]);
  await keys.stop();
});

it("pruning 5,000 keys with keepsOwners takes less than 80 times as long as without it", async () => {
  const file = temporaryFile();
  const keys = createSqliteApiKeys(file);
  await keys.start();
  await keys.insertApiKey(apiKeyOf(1, { expiresAt: 1_000 }), 10);
  await change(
    file,
    `insert into api_keys with recursive numbers(n) as (select 2 union all select n + 1 from numbers where n < 5000)
      select 'k' || n, digest, 'principal ' || n, tenant, roles, created_at, expires_at, revoked_at, n, checksum from api_keys, numbers`,
  );
  const timeOf = async (keepsOwners: boolean, pruned: number): Promise<number> => {
    const start = performance.now();
    expect(await keys.pruneApiKeys(2_000, { keepsOwners })).toBe(pruned);
    return performance.now() - start;
  };
  const keptMs = Math.min(await timeOf(true, 0), await timeOf(true, 0)); // The faster of two runs: the machine may be busy during one.
  expect(keptMs / (await timeOf(false, 5_000))).toBeLessThan(80);
  await keys.stop();
});

it("says what to do about a damaged file of keys", async () => {
  const file = temporaryFile();
  writeFileSync(file, "no database".repeat(1_000));
  await expect(createSqliteApiKeys(file).start()).rejects.toThrow("create every key again");
  rmSync(file);
  const keys = createSqliteApiKeys(file);
  await keys.start();
  await keys.stop();
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0xff, bytes.length / 4));
  await expect(createSqliteApiKeys(file).start()).rejects.toThrow("create every key again");
});

it("reports a file that is damaged while it is open", async () => {
  const file = temporaryFile();
  const faults: string[] = [];
  const keys = createSqliteApiKeys(file, { onFault: ({ message }) => void faults.push(message) });
  await keys.start();
  await keys.insertApiKey(apiKeyOf(1), 10);
  expect(faults).toEqual([]);
  writeFileSync(file, readFileSync(file).fill(0xff));
  await expect(keys.listApiKeys(0)).rejects.toThrow("create every key again");
  expect(faults).toEqual([expect.stringContaining("create every key again")]);
  await expect(keys.stop()).rejects.toThrow("create every key again");
});

const rules = [{ effect: "allow", actions: ["publish"], filter: "a" }] as const;
/** Changes a role's rules to a text that putRole never stores, with a matching checksum. */
const forged = (text: string): string => `rules = '${text}', checksum = ${checksumOf(["member", text, 1])}`;

it.each([
  ["no list", "rules = 'no list'"],
  ["a wider filter", `rules = '${JSON.stringify([{ ...rules[0], filter: "#" }])}'`],
  ["bytes", "rules = x'00'"],
  ["another revision", "revision = 7"],
  ["a text as the checksum", "checksum = 'x'"],
  ["an unknown action, with its checksum", forged('[{"actions":["everything"]}]')],
  ["an invalid filter, with its checksum", forged('[{"effect":"allow","actions":["read"],"filter":"a/#/b"}]')],
  ["no list, with its checksum", forged("{}")],
])(
  "reads no rules of a role after another program changed its row (%s), reads other roles as before, and putRole repairs it",
  async (_, damage) => {
    const file = temporaryFile();
    const keys = createSqliteApiKeys(file);
    await keys.start();
    for (const name of ["member", "other"]) await keys.putRole({ name, rules }, 10);
    await change(file, `update access_roles set ${damage} where name = 'member'`);
    const expected = [
      { name: "member", rules: undefined },
      { name: "other", rules },
    ];
    expect((await keys.readRoles(0))?.roles).toEqual(expected);
    expect(await readSqliteRoles(file)).toEqual(expected);
    await keys.putRole({ name: "member", rules }, 10);
    expect((await keys.readRoles(0))?.roles).toEqual([{ name: "member", rules }, expected[1]]);
    await keys.stop();
  },
);

it.each(["name = x'01'", "name = 'no role'"])(
  "ignores a role after another program changed its name to an invalid one (%s)",
  async (damage) => {
    const file = temporaryFile();
    const keys = createSqliteApiKeys(file);
    await keys.start();
    await keys.putRole({ name: "member", rules }, 10);
    await change(file, `update access_roles set ${damage}`);
    expect(await keys.readRoles(0)).toEqual({ revision: 1, roles: [] });
    await keys.stop();
  },
);

it("reads roles without changing the file, reads none from a file without their tables, and refuses a missing file", async () => {
  const file = temporaryFile();
  const keys = createSqliteApiKeys(file);
  await keys.start();
  await keys.putRole({ name: "member", rules }, 10);
  const before = readFileSync(file);
  expect(await readSqliteRoles(file)).toEqual([{ name: "member", rules }]);
  expect(readFileSync(file).equals(before)).toBe(true);
  await keys.stop();
  await change(file, "drop table access_roles; drop table access_role_revisions");
  expect(await readSqliteRoles(file)).toEqual([]);
  await expect(readSqliteRoles(`${file}-none`)).rejects.toThrow("no such file");
});

it("refuses to read roles after an older copy was written over their file", async () => {
  const [file, backup] = [temporaryFile(), temporaryFile()];
  const keys = createSqliteApiKeys(file);
  await keys.start();
  copyFileSync(file, backup);
  await keys.putRole({ name: "member", rules }, 10);
  copyFileSync(backup, file);
  await expect(keys.readRoles(1)).rejects.toThrow("replaced by older ones");
  await keys.stop();
});

it("finds changed roles without reading their rules, and parses many roles in slices", async () => {
  const file = temporaryFile();
  const keys = createSqliteApiKeys(file);
  await keys.start();
  const rules = Array.from({ length: 100 }, () => ({ effect: "allow", actions: ["read"], filter: "a/#" }) as const);
  for (let index = 0; index < 200; index += 1) await keys.putRole({ name: `role-${index}`, rules }, 200);
  const native = await openNative(file);
  const plan = native.prepare("explain query plan select sum(checksum) from access_roles").all();
  native.close();
  expect(JSON.stringify(plan)).toContain("COVERING INDEX access_roles_by_checksum");
  let turns = 0;
  const turning = setInterval(() => (turns += 1), 0);
  expect((await keys.readRoles(0))?.roles).toHaveLength(200);
  clearInterval(turning);
  expect(turns).toBeGreaterThan(2);
  await keys.stop();
});
