import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { apiKeyOf, testApiKeys } from "../../../ports/api-keys.contract.ts";
import { temporaryFile } from "../../temporary-file.contract.ts";
import { openNative } from "./native.ts";
import { createSqliteApiKeys } from "./sqlite-api-keys.ts";

testApiKeys("SQLite", async () => {
  const file = temporaryFile();
  return [createSqliteApiKeys(file), createSqliteApiKeys(file)];
});

async function change(file: string, statement: string): Promise<void> {
  const native = await openNative(file);
  native.exec(statement);
  native.close();
}

it.each(["roles = '[\"admin\"]'", "roles = 'no list'", "roles = x'00'", "created_at = 1.5", "principal = x'01'"])(
  "leaves out a row that another hand changed to %s, revokes it without roles, and reads the others",
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

it("does not list keys of a file that another one has replaced", async () => {
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

it("does not list keys after an older copy was written over them", async () => {
  const [file, backup] = [temporaryFile(), temporaryFile()];
  const keys = createSqliteApiKeys(file);
  await keys.start();
  await keys.insertApiKey(apiKeyOf(1), 10);
  copyFileSync(file, backup);
  await keys.insertApiKey(apiKeyOf(2), 10);
  const upTo = (await keys.listApiKeys(0)).at(-1)?.revision ?? 0;
  copyFileSync(backup, file);
  await expect(keys.listApiKeys(upTo)).rejects.toThrow("replaced by older ones");
  await keys.stop();
});

it("says what to do about a damaged file, and nothing of the store", async () => {
  const file = temporaryFile();
  writeFileSync(file, "no database".repeat(1_000));
  await expect(createSqliteApiKeys(file).start()).rejects.toThrow("create every key anew");
  rmSync(file);
  const keys = createSqliteApiKeys(file);
  await keys.start();
  await keys.stop();
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0xff, bytes.length / 4));
  await expect(createSqliteApiKeys(file).start()).rejects.toThrow("create every key anew");
});
