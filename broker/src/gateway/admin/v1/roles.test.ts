import { adminOperations, adminPath } from "@stele/wire";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { adminRules } from "../../../domain/access-role.ts";
import type { AccessRule } from "../../../domain/access-rule.ts";
import { formatKeyCredential } from "../../../engine/access/credential.ts";
import { TestEngine } from "../../../engine/testing/test-engine.ts";
import type { AuditLine } from "../../../ports/audit-log.ts";
import { MemoryApiKeys } from "../../../store/memory/memory-api-keys.ts";
import { serve, type Served } from "../../testing/serve.ts";
import { secret } from "../../../engine/testing/key-secret.ts";

const id = "1".repeat(16);
const key = formatKeyCredential({ id, secret });
const member: readonly AccessRule[] = [{ effect: "allow", actions: ["publish"], filter: "${tenant}/#" }];
const roles = new Map([
  ["admin", adminRules],
  ["member", member],
]);
const reader = { actions: ["read"], filter: "a/#" };
const tooMany = Array.from({ length: 101 }, () => reader);

let apiKeys: MemoryApiKeys;
let engine: TestEngine;
let server: Served;
let lines: AuditLine[];
beforeEach(async () => {
  lines = [];
  apiKeys = new MemoryApiKeys();
  const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
  const own = { id, digest: secret, principal: "operator", tenant: undefined, roles: ["admin"] };
  await apiKeys.insertApiKey({ ...own, ...times }, 10);
  const auditLog = { write: (line: AuditLine) => void lines.push(line), findTrouble: () => undefined };
  engine = await TestEngine.start({ keys: { apiKeys, roles, sha256: (text) => text }, auditLog });
  const { calls, operator } = engine.running;
  server = await serve({ authenticate: (credential, origin) => calls.authenticate(credential, origin) }, { operator });
});
afterEach(async () => {
  await server.close();
  await engine.stop();
});

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** Calls an operation, and checks a successful answer against its schema. */
async function call(name: keyof typeof adminOperations, role = "", body?: unknown): Promise<Answer> {
  const { method, path, result } = adminOperations[name];
  const headers = { authorization: `Bearer ${key}`, ...(body !== undefined && { "content-type": "application/json" }) };
  const url = `${server.url}${adminPath}${path.replace("{name}", encodeURIComponent(role))}`;
  const answer = await fetch(url, { method, headers, ...(body !== undefined && { body: toText(body) }) });
  const value: unknown = await answer.json();
  if (answer.status === 200) expect(result.safeParse(value)).toMatchObject({ success: true });
  return { status: answer.status, body: value };
}

const toText = (body: unknown): string => (typeof body === "string" ? body : JSON.stringify(body));

const stored = { source: "store", isDamaged: false, hidesStored: false };

it("sets, shows, changes and deletes a role of the store", async () => {
  const rules = [{ effect: "allow", ...reader }];
  expect(await call("setRole", "reader", { rules: [reader] })).toEqual({
    status: 200,
    body: { name: "reader", rules, ...stored },
  });
  expect((await call("getRole", "reader")).body).toMatchObject({ rules });
  expect((await call("setRole", "reader", { rules: [] })).body).toMatchObject({ rules: [] });
  expect((await call("getRole", "reader")).body).toMatchObject({ rules: [] });
  expect(await call("deleteRole", "reader")).toEqual({ status: 200, body: { name: "reader" } });
  expect(await call("getRole", "reader")).toMatchObject({ status: 404, body: { code: 100_704 } });
  expect(await call("deleteRole", "reader")).toMatchObject({ status: 404, body: { code: 100_704 } });
});

it("deletes no role if the call's body was not read to its end, although the operation needs no body", async () => {
  await call("setRole", "reader", { rules: [reader] });
  expect(await call("deleteRole", "reader", "x".repeat(2 ** 21))).toMatchObject({
    status: 400,
    body: { code: 200_001 },
  });
  expect(await call("getRole", "reader")).toMatchObject({ status: 200 });
});

it("lists the roles of the file, the store and the broker by name, in pages", async () => {
  await apiKeys.putRole({ name: "member", rules: [] }, 10);
  await call("setRole", "Zoo", { rules: [reader] });
  expect((await call("listRoles")).body).toEqual({
    items: [
      { name: "Zoo", rules: [{ effect: "allow", ...reader }], ...stored },
      { name: "admin", source: "broker", rules: adminRules, isDamaged: false, hidesStored: false },
      { name: "member", source: "file", rules: member, isDamaged: false, hidesStored: true },
    ],
  });
  const { operator, calls } = engine.running;
  const principal = await calls.authenticate(key, { address: undefined, protocol: "admin" });
  const caller = { principal, protocol: "admin" } as never; // The fields that listRoles reads.
  const first = await operator.listRoles(caller, { after: undefined, limit: 2 });
  expect([first.items.map(({ name }) => name), first.next]).toEqual([["Zoo", "admin"], "admin"]);
  const second = await operator.listRoles(caller, { after: first.next, limit: 2 });
  expect([second.items.map(({ name }) => name), second.next]).toEqual([["member"], undefined]);
});

it("ends a page of roles at a thousand rules", async () => {
  const names = Array.from({ length: 12 }, (_, index) => `many-${String(index).padStart(2, "0")}`);
  const rules = tooMany.slice(1);
  for (const name of names) expect((await call("setRole", name, { rules })).status).toBe(200);
  const { items, next } = (await call("listRoles")).body as { items: readonly unknown[]; next: string };
  expect([items.length, next]).toEqual([1 + 9, "many-08"]);
});

describe("setRole is refused, and changes nothing:", () => {
  it.each<[string, { readonly name: string; readonly body: unknown }, number]>([
    ["a role of the file", { name: "member", body: { rules: [] } }, 409],
    ["the role of every broker", { name: "admin", body: { rules: [] } }, 409],
    ["an invalid name", { name: "a b", body: { rules: [] } }, 400],
    ["a long name", { name: "x".repeat(65), body: { rules: [] } }, 400],
    ["no rules", { name: "x", body: {} }, 400],
    ["a body with an unknown member", { name: "x", body: { rules: [], name: "y" } }, 400],
    ["a rule without actions", { name: "x", body: { rules: [{ actions: [] }] } }, 400],
    ["an unknown action", { name: "x", body: { rules: [{ actions: ["everything"] }] } }, 400],
    ["an invalid filter", { name: "x", body: { rules: [{ actions: ["read"], filter: "a/#/b" }] } }, 400],
    ["an unknown variable", { name: "x", body: { rules: [{ actions: ["read"], filter: "${group}/#" }] } }, 400],
    ["admin of a topic", { name: "x", body: { rules: [{ actions: ["admin"], filter: "a" }] } }, 400],
    ["rules that are given twice", { name: "x", body: '{"rules": [], "rules": []}' }, 400],
    ["a rule with a member twice", { name: "x", body: '{"rules": [{"actions": ["read"], "actions": ["open"]}]}' }, 400],
    ["too many rules", { name: "x", body: { rules: tooMany } }, 400],
  ])("%s", async (_, { name, body }, status) => {
    const code = status === 409 ? 100_705 : 200_001;
    expect(await call("setRole", name, body)).toMatchObject({ status, body: { code } });
    expect(await apiKeys.readRoles(0)).toBeUndefined();
  });
});

it("deletes a role of the store that the file's role hides, but not the file's role", async () => {
  await apiKeys.putRole({ name: "member", rules: [] }, 10);
  expect((await call("deleteRole", "member")).status).toBe(200);
  expect(await call("deleteRole", "member")).toMatchObject({ status: 404, body: { code: 100_704 } });
  expect((await call("getRole", "member")).body).toMatchObject({ source: "file", hidesStored: false });
});

it("audits every read and every change, a change also before it begins", async () => {
  const rules = JSON.stringify([{ effect: "allow", ...reader }]);
  await call("setRole", "reader", { rules: [reader] });
  await call("deleteRole", "reader");
  await call("deleteRole", "reader");
  await call("getRole", "member");
  await call("listRoles");
  const who = { principal: "operator", keyId: id, protocol: "admin" };
  expect(lines).toMatchObject([
    { ...who, action: "role set", outcome: "begun", role: "reader", rules },
    { ...who, action: "role set", outcome: "done", role: "reader", rules },
    { ...who, action: "role delete", outcome: "begun", role: "reader" },
    { ...who, action: "role delete", outcome: "done", role: "reader" },
    { ...who, action: "role delete", outcome: "begun", role: "reader" },
    { ...who, action: "role delete", outcome: "failed", role: "reader", code: 100_704 },
    { ...who, action: "show role", outcome: "done", role: "member" },
    { ...who, action: "list roles", outcome: "done" },
  ]);
});

it("answers 503 with retry if the store fails", async () => {
  apiKeys.putRole = () => Promise.reject(new Error("disk I/O error"));
  expect(await call("setRole", "reader", { rules: [] })).toMatchObject({
    status: 503,
    body: { code: 200_207, retry: true },
  });
});

it("answers 409 for roles if access control is off", async () => {
  await using open = await TestEngine.start().then((started) => ({
    started,
    [Symbol.asyncDispose]: () => started.stop(),
  }));
  await using plain = await serve({}, { operator: open.started.running.operator });
  const answer = await fetch(`${plain.url}${adminPath}/roles`);
  expect([answer.status, await answer.json()]).toMatchObject([409, { code: 100_705 }]);
});
