import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { runKeys } from "./keys.ts";
import { describeRoles, runRoles } from "./roles.ts";
import { loadConfig } from "../config/load-config.ts";
import { apiKeyOf } from "../ports/api-keys.contract.ts";
import { createSqliteApiKeys } from "../store/sql/sqlite/sqlite-api-keys.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "keys-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const now = (): number => Date.UTC(2026, 0, 1);
const run = (command: typeof runKeys, ...argv: readonly string[]) =>
  command([...argv, "--data-dir", folder], { env: {}, now });

it("key revoke refuses a second key, revokes neither, and does not print the second", async () => {
  const create = () => run(runKeys, "create", "--principal", "shop", "--role", "admin");
  const [{ output: first }, { output: second }] = [await create(), await create()];
  const { exitCode, problem } = await run(runKeys, "revoke", first.trim(), second.trim());
  expect({ exitCode, problem }).toEqual({ exitCode: 2, problem: expect.stringContaining("more arguments") });
  expect(problem).not.toContain(second.trim());
  expect((await run(runKeys, "list")).output).not.toContain("revoked");
});

it.each([
  ["create", "--principal", "shop", "--role", "admin", "reader"],
  ["list", "shop"],
])("key %s refuses an extra argument", async (...argv) => {
  expect(await run(runKeys, ...argv)).toMatchObject({ exitCode: 2 });
});

it.each([
  ["list", "reader"],
  ["set", "reader", "[]", "writer"],
  ["delete", "reader", "writer"],
])("role %s refuses an extra argument", async (...argv) => {
  await run(runRoles, "set", "reader", "[]");
  expect(await run(runRoles, ...argv)).toMatchObject({ exitCode: 2 });
  expect((await run(runRoles, "list")).output).toContain("reader");
});

it("role set refuses rules that give a name twice, and stores nothing", async () => {
  const rules = '[{"effect": "deny", "effect": "allow", "actions": ["read"]}]';
  const problem = expect.stringContaining('an object has the name "effect" twice');
  expect(await run(runRoles, "set", "reader", rules)).toMatchObject({ exitCode: 2, problem });
  expect((await run(runRoles, "list")).output).not.toContain("reader");
});

it.each([
  ["key list", runKeys, ["list"]],
  ["key revoke", runKeys, ["revoke", "0123456789abcdef"]],
  ["role list", runRoles, ["list"]],
  ["role delete", runRoles, ["delete", "reader"]],
])("stele %s reports a data folder that does not exist, and does not create it", async (_, command, argv) => {
  const missing = join(folder, "missing");
  const outcome = await command([...argv, "--data-dir", missing], { env: {}, now });
  expect(outcome).toMatchObject({ exitCode: 1, problem: expect.stringContaining(`${missing} does not exist`) });
  expect(existsSync(missing)).toBe(false);
});

it.each([
  ["key create", runKeys, ["create", "--principal", "shop", "--role", "admin"]],
  ["key list", runKeys, ["list"]],
  ["role set", runRoles, ["set", "reader", "[]"]],
])(
  "stele %s refuses a backup, and changes no file of it: it could not be restored any more",
  async (_, command, argv) => {
    await run(runKeys, "create", "--principal", "shop", "--role", "admin");
    writeFileSync(join(folder, "backup.json"), "{}");
    const before = readFileSync(join(folder, "keys.sqlite"));
    const problem = expect.stringContaining(`${folder} is a backup, and must not change`);
    expect(await run(command, ...argv)).toMatchObject({ exitCode: 1, output: "", problem });
    expect(readFileSync(join(folder, "keys.sqlite"))).toEqual(before);
  },
);

it("stele key create refuses a folder whose restore has not finished: its operator may delete it, and the new key with it", async () => {
  writeFileSync(join(folder, "restore.unfinished"), "");
  const problem = expect.stringContaining(`A restore to ${folder} has not finished`);
  const create = ["create", "--principal", "shop", "--role", "admin"];
  expect(await run(runKeys, ...create)).toMatchObject({ exitCode: 1, output: "", problem });
  expect(readdirSync(folder)).toEqual(["restore.unfinished"]);
});

it.each([
  ["key", runKeys],
  ["role", runRoles],
])("stele %s escapes the name of a missing folder in its error message", async (name, command) => {
  const outcome = await command(["list", "--data-dir", join(folder, "\u001b[2J\nmissing")], { env: {}, now });
  const problem = `stele ${name}: ${folder}/\\u{1b}[2J\\u{a}missing does not exist`;
  expect(outcome).toMatchObject({ exitCode: 1, problem: expect.stringContaining(problem) });
});

it("stele key list escapes the control characters in the texts of a key; a reader of its JSON gets the texts unchanged", async () => {
  const keys = createSqliteApiKeys(join(folder, "keys.sqlite"));
  await keys.start();
  const texts = { tenant: "a\ncme", principal: "sh\u009b2Jop", roles: ["\u001b[2J", "reader"] };
  await keys.insertApiKey(apiKeyOf(1, texts), 10);
  await keys.stop();
  const { output } = await run(runKeys, "list");
  expect(output).toBe("0000000000000001  a\\u{a}cme/sh\\u{9b}2Jop  \\u{1b}[2J,reader  valid\n");
  const json = (await run(runKeys, "list", "-o", "json")).output;
  expect(json).not.toContain("\u009b");
  expect(JSON.parse(json)).toMatchObject([texts]);
});

it("stele role list and show escape for a terminal the group that a rule names", async () => {
  const rules = [{ effect: "deny", actions: ["read"], groupId: "\u009b2J\u202e" }];
  await run(runRoles, "set", "reader", JSON.stringify(rules));
  const text = String.raw`[{"effect":"deny","actions":["read"],"groupId":"\u009b2J\u202e"}]`;
  expect((await run(runRoles, "list")).output).toContain(`role reader = ${text}  (store)\n`);
  const { output } = await run(runRoles, "show", "reader");
  expect(output).toBe(`${text}\n`);
  expect(JSON.parse(output)).toEqual(rules);
});

it("describeRoles escapes its reason if it cannot read the roles of the store", async () => {
  const dataDir = join(folder, "\u001b[2J\ndamaged");
  mkdirSync(dataDir);
  writeFileSync(join(dataDir, "keys.sqlite"), "no database".repeat(1_000));
  const loaded = loadConfig({
    env: { STELE_ACCESS: "{}" },
    argv: ["--data-dir", dataDir],
    readFile: () => "",
    version: "",
  });
  if (loaded.status !== "loaded") throw new Error(JSON.stringify(loaded));
  expect(await describeRoles(loaded.config)).toMatch(
    /^roles of the store: not read, .*\\u\{1b\}\[2J\\u\{a\}damaged.*\n$/m,
  );
});

it.each([
  ["key", runKeys],
  ["role", runRoles],
])(
  "stele %s without an action writes its usage to stderr, which a script does not take for a result",
  async (name, run) => {
    const problem = expect.stringMatching(`^Usage: stele ${name} `);
    expect(await run([], { env: {}, now })).toEqual({ exitCode: 2, output: "", problem });
  },
);

it("creates a missing data folder for the first key, and for the first role", async () => {
  const made = [join(folder, "keys"), join(folder, "roles")] as const;
  const create = ["create", "--principal", "shop", "--role", "admin", "--data-dir", made[0]];
  expect(await runKeys(create, { env: {}, now })).toMatchObject({ exitCode: 0 });
  expect(await runRoles(["set", "reader", "[]", "--data-dir", made[1]], { env: {}, now })).toMatchObject({
    exitCode: 0,
  });
});

it.each([
  { lastingRoles: [], isKept: false },
  { lastingRoles: ["admin"], isKept: true },
])(
  "with the issuer's lastingRoles $lastingRoles, the list still has a principal's last key 31 days after its revocation: $isKept",
  async ({ lastingRoles, isKept }) => {
    const config = join(folder, "stele.json");
    const issuer = {
      issuer: "https://id.example",
      audience: "stele",
      keys: "issuer.pem",
      tenant: "acme",
      lastingRoles,
    };
    writeFileSync(config, JSON.stringify({ dataDir: join(folder, "data"), access: { tokens: [issuer] } }));
    const at = async (days: number, ...argv: readonly string[]) =>
      runKeys([...argv, "--config", config], { env: {}, now: () => now() + days * 86_400_000 });
    const create = (days: number, name: string) =>
      at(days, "create", "--principal", name, "--tenant", "acme", "--role", "admin");
    await at(0, "revoke", (await create(0, "former")).output.trim());
    expect(await create(31, "other")).toMatchObject({ exitCode: 0 });
    expect((await at(31, "list")).output.includes("acme/former")).toBe(isKept);
  },
);

it("names the file that the first key creates, and says that only a broker with this data folder reads it", async () => {
  const dataDir = join(folder, "first");
  const create = ["create", "--principal", "shop", "--role", "admin", "--data-dir", dataDir];
  expect((await runKeys(create, { env: {}, now })).problem).toBe(
    `stele key: created ${dataDir}/keys.sqlite, which only a broker with this data folder reads\n`,
  );
  expect((await runKeys(create, { env: {}, now })).problem).toBe("");
});

it("names the file that a refused command has created, since the next command says nothing of it", async () => {
  const dataDir = join(folder, "first");
  const create = ["create", "--principal", "shop", "--role", "missing", "--data-dir", dataDir];
  const { exitCode, problem } = await runKeys(create, { env: {}, now });
  expect({ exitCode, problem }).toEqual({
    exitCode: 2,
    problem: expect.stringMatching(
      /^stele key: created .+\/first\/keys\.sqlite, .+\nstele key: --role missing is none/,
    ),
  });
  const unusable = ["create", "--data-dir", join(dataDir, "keys.sqlite")];
  expect((await runKeys(unusable, { env: {}, now })).problem).not.toContain("created");
});

it.runIf(process.getuid?.() === 0).each([
  ["key create", runKeys, ["create", "--principal", "shop", "--role", "admin"]],
  ["key create with a missing role", runKeys, ["create", "--principal", "shop", "--role", "missing"]],
  ["key list", runKeys, ["list"]],
  ["key revoke", runKeys, ["revoke", "0123456789abcdef"]],
  ["role list", runRoles, ["list"]],
])(
  "stele %s as root gives a new file of keys to the owner of the data folder, who runs the broker",
  async (_, command, argv) => {
    chownSync(folder, 65_534, 65_534);
    await run(command, ...argv);
    expect(statSync(join(folder, "keys.sqlite"))).toMatchObject({ uid: 65_534, gid: 65_534 });
  },
);

it("refuses a link as the file of keys: the owner of the data folder could make root write any file", async () => {
  const target = join(folder, "elsewhere");
  symlinkSync(target, join(folder, "keys.sqlite"));
  const outcome = await run(runKeys, "create", "--principal", "shop", "--role", "admin");
  expect(outcome).toMatchObject({ exitCode: 1, problem: expect.stringContaining("keys.sqlite is a symbolic link") });
  expect(existsSync(target)).toBe(false);
});
